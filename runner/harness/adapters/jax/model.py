"""A user's ``JaxModel``."""

import sys

from ...model import held
from ...model.state import Store
from ..user_model import UserModel as Base
from . import device as jax_device

NNX = ("Module", "Optimizer", "Object", "Pytree")
"""Classes of ``flax.nnx`` whose objects hold arrays, in one release or another."""


def is_array(leaf: "object") -> "bool":
    """Return whether a leaf is an array of numbers that is still there; a key of a random generator is none."""
    import jax
    import numpy

    if not isinstance(leaf, (jax.Array, numpy.ndarray, numpy.generic)) or str(leaf.dtype).startswith("key<"):
        return False
    return leaf.dtype.kind in "buifcV" and leaf.dtype.names is None and not getattr(leaf, "is_deleted", bool)()


def is_number(leaf: "object") -> "bool":
    """Return whether a leaf is a number of Python: the counter of a ``TrainState`` before its first step."""
    return isinstance(leaf, (int, float)) and not isinstance(leaf, bool)


def is_nnx(value: "object") -> "bool":
    """Return whether a value is a module of Flax's NNX."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(value, tuple(getattr(nnx, name) for name in NNX if hasattr(nnx, name)))


LOOKS, LOOK_EVERY = 5, 64  # calls: the first ones after which all attributes are looked at, and how often later
WAITS, TREE, NOTHING = "waits", "tree", "nothing"
WAYS = {}
"""Class of a value -> how its arrays are waited for: by its own method, as a tree of JAX, or not at all."""


def way(value: "object") -> "str":
    """Return how the arrays in a value are waited for, one of those in WAYS; a module, such as ``jax``, holds none."""
    import numpy

    if isinstance(value, (str, int, float, type(None), numpy.ndarray, type(sys))):
        return NOTHING
    if hasattr(value, "block_until_ready"):
        return WAITS
    return NOTHING if callable(value) else TREE


def wait_for(values: "object") -> "None":
    """Wait for the arrays among some values, and in their trees.

    This is timed: with JAX 0.10 an array takes 0.4 us, a tree 3 us, and anything else 0.1 us.
    """
    trees = []
    for value in values:
        kind = type(value)
        how = WAYS.get(kind)
        if how is None:
            how = WAYS[kind] = way(value)
        if how is WAITS:
            value.block_until_ready()
        elif how is TREE:
            trees.append(value)
    if trees:
        import jax

        jax.block_until_ready(trees)


def is_ready(value: "object") -> "bool":
    """Return whether all arrays in the tree of a value have been computed, or overwritten."""
    if WAYS.setdefault(type(value), way(value)) is NOTHING:
        return True
    import jax

    leaves = [leaf for leaf in jax.tree_util.tree_leaves(value) if hasattr(leaf, "block_until_ready")]
    return all(getattr(leaf, "is_deleted", bool)() or getattr(leaf, "is_ready", bool)() for leaf in leaves)


def wait_for_the_rest(values: "list") -> "None":
    """Wait for the arrays in the trees of some values that are still there."""
    import jax

    for leaf in jax.tree_util.tree_leaves([value for value in values if way(value) is not NOTHING]):
        if not getattr(leaf, "is_deleted", bool)():
            jax.block_until_ready(leaf)


class UserModel(Base):
    """Its default state are all arrays in the trees of its attributes, and of the objects of the user's that it holds.

    Data are among them: nothing tells them from weights before a step, and they are the same in each release.
    JAX returns before a computation has ended, on a CPU too. So what a timed call returned is kept for ``synchronize``,
    which waits for it. An update of attributes may be a computation of its own that ends later. To look at all of them
    takes 3 us, and more where the caches are cold, so that is done after the first calls, and now and then: those that
    were not ready once are then waited for after each call.
    """

    asynchronous = True
    framework = "jax"
    label = "JAX"
    stateful = "no attribute holds arrays"
    returned = None  # by the last call
    readers = None  # of the attributes of the user's object, and of the objects with attributes that it holds
    late = ()  # the positions, among the values that ``readers`` return, of those that are waited for after each call
    looked_at = None  # how many values there were, when all were looked at for the last time
    calls = 0
    calls_at_look = None
    next_look = 0  # by how many calls attributes are looked at again

    def prepare(self, device, precision):
        """See UserModel of ``user_model``; JAX computes in float64 only where that is enabled for all of a process.

        On a CPU, programs from JAX's cache on disk write over donated arrays that share their memory with NumPy's, where
        programs that were just compiled copy them: with 0.4.28 to 0.4.36 that changed the user's data, or crashed; 0.10.2
        copies. So only ``compile-warm``, which times that cache, uses it.
        """
        import jax

        jax_device.prepare(device, precision)
        if device == "cpu" and not self.keeps_compiled:
            jax_device.set_if_known("jax_enable_compilation_cache", False)
        if precision == "fp64":
            jax.config.update("jax_enable_x64", True)

    def timed(self, method):
        def call():
            self.returned = None
            self.calls += 1
            self.returned = returned = method()
            return returned

        return call

    def synchronize(self):
        returned, self.returned = self.returned, None  # as in a script, it is gone before the next call
        is_due = self.calls != self.calls_at_look and (returned is None or self.calls >= self.next_look)
        try:
            wait_for((returned,))
            if is_due or self.late:
                self.wait_for_attributes(is_due)
        except (RuntimeError, ValueError):  # some were given away to a computation that has overwritten them
            wait_for_the_rest([returned] + self.values())

    def wait_for_attributes(self, is_due: "bool") -> "None":
        """Wait for the arrays in attributes that once were not ready as soon as what a call returned was.

        Args:
            is_due: whether all attributes are looked at.
        """
        values = self.values()
        if is_due or len(values) != self.looked_at:
            self.calls_at_look, self.looked_at = self.calls, len(values)
            self.next_look = self.calls + 1 if self.calls < LOOKS else (self.calls // LOOK_EVERY + 1) * LOOK_EVERY
            late = [position for position, value in enumerate(values) if position in self.late or not is_ready(value)]
            self.late = tuple(late)
        wait_for([values[position] for position in self.late])

    def values(self) -> "list":
        """Return the values of all attributes of the user's object, and of the objects with attributes that it holds."""
        if self.readers is None:  # before anything is timed
            self.readers = [held.reader(owner) for _, owner in self.owners()]
        return [value for read in self.readers for value in read()]

    def as_array(self, value):
        import jax
        import numpy

        return numpy.asarray(value) if isinstance(value, jax.Array) else None

    def is_whole(self, value):
        """See UserModel of ``user_model``: a tree, such as a dataclass that is registered, or a module of NNX."""
        import jax

        return is_nnx(value) or not jax.tree_util.all_leaves([value])

    def stores(self):
        """See UserModel of ``user_model``; an array is named by its attribute and its path in the tree."""
        if is_nnx(self.model):
            return [self.tree_store("", Nnx(self.model))]
        stores = []
        for prefix, owner in self.owners():
            for name, value in held.attributes(owner):
                source = Nnx(value) if is_nnx(value) else Attribute(owner, name)
                store = self.tree_store("{}.{}".format(prefix, name).strip("."), source)
                stores += [store] if store.names else []
        return stores

    def owners(self):
        """Return [(name, object)] of the user's object and of the objects of the user's classes that it holds."""
        owners = {}
        for name, value in self.attributes():
            if not name or (held.is_users(value) and not self.is_whole(value)):
                owners.setdefault(id(value), (name, value))
        return sorted(owners.values(), key=lambda pair: pair[0])

    def tree_store(self, prefix, source):
        """Return the store of the arrays in the tree of a source; without names where it holds none."""
        import jax

        paths, leaves = named_leaves(source.read())
        chosen = [index for index, leaf in enumerate(leaves) if is_array(leaf)]
        if chosen:
            chosen = [index for index, leaf in enumerate(leaves) if is_array(leaf) or is_number(leaf)]

        def write(values):
            leaves, structure = jax.tree_util.tree_flatten(source.read())
            for index, array in zip(chosen, values):
                leaves[index] = leaves[index] if array is None else alike(leaves[index], array)
            source.write(jax.tree_util.tree_unflatten(structure, leaves))

        names = ["{}.{}".format(prefix, paths[index]).strip(".") for index in chosen]
        return Store(names, lambda: [leaves[index] for index in chosen], write)

    @classmethod
    def draws(cls):
        """See UserModel of ``user_model``: without the setting of ``load``, 0.5 draws other bits from a key than 0.4."""
        import jax

        key = jax.random.PRNGKey(0)
        drawn = [jax.random.split(key, 3), jax.random.randint(key, (5,), 0, 1000, "int32"), jax.random.uniform(key, (5,), "float32")]
        return repr([array.tolist() for array in drawn])

    def why_cold(self):
        return jax_device.why_cold()

    def peak_bytes(self):
        return jax_device.peak_bytes()


class Attribute(object):
    """An attribute of an object whose value is a tree."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def read(self):
        """Return its value."""
        return getattr(self.owner, self.name)

    def write(self, tree):
        """Set it, also where its object is frozen."""
        try:
            setattr(self.owner, self.name, tree)
        except AttributeError:
            object.__setattr__(self.owner, self.name, tree)


class Nnx(object):
    """A module of NNX, whose arrays are those of its state."""

    def __init__(self, module):
        self.module, self.nnx = module, sys.modules["flax.nnx"]

    def read(self):
        """Return its state."""
        return self.nnx.state(self.module)

    def write(self, tree):
        """Put a state into it."""
        self.nnx.update(self.module, tree)


def named_leaves(tree: "object") -> "tuple":
    """Return (paths, leaves) of a tree; a path has the keys of dicts, the names of attributes and the numbers of lists.

    Before 0.4.6 JAX tells no paths, and a leaf has its number.
    """
    import jax

    with_path = getattr(jax.tree_util, "tree_flatten_with_path", None)
    if with_path is None:
        leaves = jax.tree_util.tree_leaves(tree)
        return [str(index) for index in range(len(leaves))], leaves
    pairs, _ = with_path(tree)
    return [".".join(key_of(key) for key in path) for path, _ in pairs], [leaf for _, leaf in pairs]


def key_of(key: "object") -> "str":
    """Return an entry of a path as text."""
    for name in ("key", "name", "idx"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def alike(leaf: "object", array: "object") -> "object":
    """Return an array, or a number, of the kind that a leaf is; a copy, which a step may overwrite."""
    import jax
    import numpy

    if is_number(leaf):
        return type(leaf)(array.item())
    if isinstance(leaf, (numpy.ndarray, numpy.generic)):
        made = numpy.array(array, leaf.dtype)
        return made if isinstance(leaf, numpy.ndarray) else made[()]
    if getattr(leaf, "weak_type", False) and array.ndim == 0:
        return jax.numpy.asarray(array.item())  # has no type of its own either: a program is not compiled again
    return jax.numpy.array(array, leaf.dtype)
