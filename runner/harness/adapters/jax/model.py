"""A user's ``JaxModel``."""

from ..user_model import UserModel as Base
from . import device as jax_device

ATTRIBUTES = ("params", "parameters", "weights", "state")


def is_array(leaf: "object") -> "bool":
    """Return whether a leaf is an array of numbers; a key of a random generator is none."""
    return hasattr(leaf, "dtype") and not str(leaf.dtype).startswith("key<")


class UserModel(Base):
    """Its default state are the arrays in the attributes ``params``, ``parameters``, ``weights`` and ``state``.

    JAX returns before a computation has ended, on a CPU too. So what a timed call returned is kept for ``synchronize``,
    which waits for it and for the arrays in all attributes: an update may be a computation of its own.
    """

    framework = "jax"
    label = "JAX"
    stateful = "no attribute `params`, `parameters`, `weights` or `state` holds arrays"
    returned = None  # by the last call

    def prepare(self, device, precision):
        """See UserModel of ``user_model``; JAX computes in float64 only where that is enabled for all of a process.

        On a CPU, programs from JAX's cache on disk write over donated arrays that share their memory with NumPy's, where
        programs that were just compiled copy them: with 0.4.28 to 0.4.36 that changed the user's data, or crashed; 0.10.2
        copies. So only ``compile-warm``, which times that cache, uses it.
        """
        import jax

        jax_device.prepare(device, precision)
        if device == "cpu" and not self.keeps_compiled:
            jax.config.update("jax_enable_compilation_cache", False)
        if precision == "fp64":
            jax.config.update("jax_enable_x64", True)

    def timed(self, method):
        def call():
            self.returned = returned = method()
            return returned

        return call

    def synchronize(self):
        import jax

        waited = self.waited_for()
        try:
            jax.block_until_ready((self.returned, waited))
        except (RuntimeError, ValueError):  # some were given away to a computation that has overwritten them
            for leaf in jax.tree_util.tree_leaves((self.returned, waited)):
                if not getattr(leaf, "is_deleted", bool)():
                    jax.block_until_ready(leaf)

    def waited_for(self):
        """Return the values of all attributes of the user's object that may hold arrays."""
        return [value for value in getattr(self.model, "__dict__", {}).values() if not callable(value)]

    def as_array(self, value):
        import jax
        import numpy

        return numpy.asarray(value) if isinstance(value, jax.Array) else None

    def trees(self):
        """Return (name of an attribute, its leaves) of each attribute of the default state."""
        import jax

        trees = []
        for name in ATTRIBUTES:
            value = getattr(self.model, name, None)
            if value is not None and not callable(value):
                leaves = jax.tree_util.tree_leaves(value)
                if any(is_array(leaf) for leaf in leaves):
                    trees.append((name, leaves))
        return trees

    def variables(self):
        """See UserModel of ``user_model``; a leaf is named by its attribute and its number in the tree."""
        named = {}
        for name, leaves in self.trees():
            for index, leaf in enumerate(leaves):
                if is_array(leaf):
                    path = "{}.{}".format(name, index)
                    named[path] = ((lambda leaf=leaf: leaf), self.writer(name, index))
        return named

    def writer(self, name, index):
        """Return a function that puts an array into the tree of an attribute, in the type that its leaf has."""

        def write(values):
            import jax

            leaves, structure = jax.tree_util.tree_flatten(getattr(self.model, name))
            leaves[index] = jax.numpy.array(values, leaves[index].dtype)  # a copy, which a step may overwrite
            setattr(self.model, name, jax.tree_util.tree_unflatten(structure, leaves))

        return write

    def peak_bytes(self):
        return jax_device.peak_bytes()
