"""Random numbers, and states, that are moved by a rounding, to see how far that moves what is computed from them."""

import numpy

ROUNDING = {"fp32": 2.0 ** -24, "tf32": 2.0 ** -11, "fp16": 2.0 ** -11, "bf16": 2.0 ** -8}
"""The unit roundoff of each precision, see ``verify.tolerance``."""


class MovedRandom(numpy.random.RandomState):
    """Draws the numbers of a RandomState, each float times 1 + ``share`` or 1 - ``share``, by chance."""

    share = 0.0

    @classmethod
    def of(cls, seed: "int", share: "float") -> "numpy.random.RandomState":
        """Return a generator; a plain RandomState where nothing is moved."""
        if not share:
            return numpy.random.RandomState(seed)
        made = cls(seed)
        made.share = share
        made.signs = numpy.random.RandomState(seed)
        return made

    def __getattribute__(self, name):
        """Return an attribute; of a method of RandomState, one that moves what it returns."""
        value = super(MovedRandom, self).__getattribute__(name)
        if name.startswith("_") or name in vars(MovedRandom) or not hasattr(numpy.random.RandomState, name):
            return value

        def draw(*arguments, **options):
            return self.move(value(*arguments, **options))

        return draw if callable(value) else value

    def move(self, numbers):
        """Return floats that are moved; anything else as it is."""
        if not (isinstance(numbers, float) or getattr(getattr(numbers, "dtype", None), "kind", "") == "f"):
            return numbers
        signs = self.signs.choice((-1.0, 1.0), numpy.shape(numbers))
        return type(numbers)(numbers * (1 + self.share * signs)) if isinstance(numbers, float) else numbers * (1 + self.share * signs)


def state(arrays: "list", share: "float", seed: "int") -> "list":
    """Return [(name, array)] whose floats are multiplied by 1 + ``share`` or 1 - ``share``, by chance."""
    random = numpy.random.RandomState(seed)
    moved = []
    for name, array in arrays:
        if array.dtype.kind == "f":
            signs = random.randint(0, 2, array.shape) * 2 - 1
            array = numpy.asarray(array * (1 + share * signs), array.dtype)
        moved.append((name, array))
    return moved
