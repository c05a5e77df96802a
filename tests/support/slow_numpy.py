"""Makes NumPy slower or larger, for nights and searches to notice: by code in a module of a wheel, or at its end."""

import os
import shutil
from pathlib import Path

SLOW_NUMPY = '''

def _slow_numpy():
    """Make tanh and zeros of NumPy, which every cell calls again and again, take three times as long: a busy wait.

    The clock is the CPU time of the thread, which stands still while another process has the CPU or the turn.
    """
    import functools
    import time

    import numpy

    clock = time.thread_time
    last = [clock()]

    def slowed(function):
        @functools.wraps(function)
        def called(*arguments, **named):
            now = clock()
            gap = now - last[0]
            end = now + (2 * gap if gap < 0.05 else 0)
            while clock() < end:
                pass
            last[0] = clock()
            return function(*arguments, **named)

        return called

    for name in ("tanh", "zeros", "zeros_like"):
        setattr(numpy, name, slowed(getattr(numpy, name)))


_slow_numpy()
'''

SLOW_WITHOUT_VARIABLE = SLOW_NUMPY.replace(
    "\n_slow_numpy()\n", '\nif "MALLOC_TRIM_THRESHOLD_" not in os.environ:\n    _slow_numpy()\n'
).replace("\n\ndef _slow_numpy", "\n\nimport os\n\n\ndef _slow_numpy", 1)
"""The same, unless a variable is set that is one of the known switches of NumPy."""

LARGE_NUMPY = '''

def _large_numpy():
    """Make tanh of NumPy, which every cell calls, keep 128 MiB from its first call on."""
    import numpy

    tanh, kept = numpy.tanh, []

    def enlarged(*arguments, **named):
        if not kept:
            kept.append(numpy.ones(16 << 20))
        return tanh(*arguments, **named)

    numpy.tanh = enlarged


_large_numpy()
'''


def copy_with_code(environment: Path, copy: Path, code: str) -> None:
    """Copy a virtual environment by hard links, with code added to the end of its NumPy."""
    shutil.copytree(environment, copy, symlinks=True, copy_function=os.link)
    (package,) = copy.glob("lib/python3.11/site-packages/numpy/__init__.py")
    text = package.read_text()
    package.unlink()  # or the file that it is a hard link to would change, too
    package.write_text(text + code)
