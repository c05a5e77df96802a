"""Code that makes NumPy slower, for nights and searches to notice: in a module of a wheel, or at the end of NumPy."""

SLOW_NUMPY = '''

def _slow_numpy():
    """Make tanh and zeros of NumPy, which every cell calls again and again, take twice as long: by a busy wait."""
    import functools
    import time

    import numpy

    clock = time.perf_counter
    last = [clock()]

    def slowed(function):
        @functools.wraps(function)
        def called(*arguments, **named):
            now = clock()
            gap = now - last[0]
            end = now + (gap if gap < 0.05 else 0)
            while clock() < end:
                pass
            last[0] = clock()
            return function(*arguments, **named)

        return called

    for name in ("tanh", "zeros", "zeros_like"):
        setattr(numpy, name, slowed(getattr(numpy, name)))


_slow_numpy()
'''
