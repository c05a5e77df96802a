"""The state of a user's network: read at once, named alike in all releases, and put back as far as both sides have it."""

import re

from . import arrays, blob
from .carried import listed
from ..errors import CellFailure

WRAPPERS = re.compile(r"(?<![^.])(_orig_mod|module)\.")
"""What ``torch.compile`` and ``DataParallel`` put before the names of what they wrap, at any place in a path."""
PARAMETRIZED = re.compile(r"parametrizations\.([^.]+)\.original([01])$")
"""A weight norm of ``torch.nn.utils.parametrizations``; its older form has the names that ``load_state_dict`` converts:
https://github.com/pytorch/pytorch/blob/v2.6.0/torch/nn/utils/parametrizations.py#L400-L414."""
OTHER_SHAPE = "{} has the shape {}, and {} in the base's state"
NOTHING_SHARED = "the state of this environment has no name in common with the base's, so it stays as it was built"


class Store(object):
    """Tensors that are read at once and written at once: of a module, a layer, a tree or a variable.

    Attributes:
        names: of the tensors; the same in each release, as far as possible.
        read: returns the tensors in that order.
        write: takes arrays in that order; None for a tensor that stays as it is.
        aliases: other names of a tensor, by its name.
    """

    def __init__(self, names, read, write, aliases=None):
        self.names, self.read, self.write, self.aliases = list(names), read, write, aliases or {}


def single(name: "str", read: "object", write: "object") -> "Store":
    """Return the store of a variable, given functions that return it and that write an array into it."""
    return Store([name], lambda: [read()], lambda values: None if values[0] is None else write(values[0]))


class Loaded(object):
    """What became of a state that was loaded.

    Attributes:
        shared: how many names both sides have.
        only_given: names of floats that the given state has alone.
        only_here: names of floats that this environment has alone.
        is_drawn: one of these may hold numbers that a generator has drawn, so that it may be another one in each release.
    """

    def __init__(self, shared=0, only_given=(), only_here=(), is_drawn=False):
        self.shared, self.only_given, self.only_here, self.is_drawn = shared, list(only_given), list(only_here), is_drawn

    def note(self) -> "str":
        """Return what only one side has, as a sentence; empty where both have the same names."""
        texts = ["only the base's state has {}".format(listed(self.only_given))] if self.only_given else []
        if self.only_here:
            texts.append("only this environment's state has {}, as it was built".format(listed(self.only_here)))
        return ", and ".join(texts)


def without_wrappers(names: "list") -> "dict":
    """Return name -> the name without what wrappers have added; where two would be the same, both stay as they are.

    >>> without_wrappers(["net._orig_mod.a.weight", "module.b.bias"])
    {'net._orig_mod.a.weight': 'net.a.weight', 'module.b.bias': 'b.bias'}
    >>> without_wrappers(["module.b", "b"])
    {'module.b': 'module.b', 'b': 'b'}
    >>> without_wrappers(["c.parametrizations.weight.original1"])
    {'c.parametrizations.weight.original1': 'c.weight_v'}
    """
    short = {name: stripped(name) for name in names}
    counts = {}
    for name in names:
        counts[short[name]] = counts.get(short[name], 0) + 1
    return {name: short[name] if counts[short[name]] == 1 else name for name in names}


def stripped(name: "str") -> "str":
    """Return a name without what wrappers have added."""
    return PARAMETRIZED.sub(lambda match: match.group(1) + "_" + "gv"[int(match.group(2))], WRAPPERS.sub("", name))


def read(stores: "list", as_array: "object") -> "list":
    """Return [(name, array)] of all stores, by name."""
    tensors = [pair for store in stores for pair in zip(store.names, store.read())]
    names = without_wrappers([name for name, _ in tensors])
    named = [(names[name], arrays.plain(tensor, name, as_array)) for name, tensor in tensors]
    return sorted(named, key=lambda pair: pair[0])


def load(stores: "list", given: "list", as_array: "object") -> "Loaded":
    """Write arrays into the tensors of the same names; what only one side has stays as it is.

    Args:
        stores: of this environment.
        given: [(name, array)] of the base.
        as_array: see ``arrays.named``.

    Raises:
        CellFailure: class ``wrong-result``, where weights that were drawn have another shape.
    """
    given = dict(given)
    names = without_wrappers([name for store in stores for name in store.names])
    left, loaded = dict(given), Loaded()
    for store in stores:
        values = []
        for name, tensor in zip(store.names, store.read()):
            known = [each for each in [names[name]] + [stripped(alias) for alias in store.aliases.get(name, ())] if each in given]
            values.append(fitting(known[0], tensor, given, as_array) if known else None)
            if known:
                left.pop(known[0], None)
            if values[-1] is not None:
                loaded.shared += 1
                continue
            array = arrays.plain(tensor, name, as_array)
            if array.dtype.kind == "f":  # others are counters and indices: ``num_batches_tracked`` came with PyTorch 0.4.1
                loaded.only_here.append(names[name])
                loaded.is_drawn = loaded.is_drawn or may_be_drawn(array)
        if any(value is not None for value in values):
            store.write(values)
    loaded.only_given = sorted(name for name in left if left[name].dtype.kind == "f")
    loaded.only_here.sort()
    return loaded


def fitting(name, tensor, given, as_array):
    """Return a given array that may be written to; None where the tensor has another shape, and neither was drawn."""
    here, array = arrays.plain(tensor, name, as_array), given[name]
    if here.shape == array.shape:
        return blob.copied(array) if here.ndim == len(getattr(tensor, "shape", ())) else array[0] + 1j * array[1]  # was complex
    if may_be_drawn(here) or may_be_drawn(array):
        raise CellFailure("wrong-result", OTHER_SHAPE.format(name, here.shape, array.shape))
    return None


def may_be_drawn(array: "object") -> "bool":
    """Return whether an array may hold numbers that a generator has drawn: floats of more than two values."""
    import numpy  # here, for the planner reads the adapters without NumPy

    if array.dtype.kind != "f":
        return False
    return numpy.unique(array.ravel()[:1000]).size > 2 or numpy.unique(array).size > 2
