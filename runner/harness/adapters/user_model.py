"""A user's own network as an implementation: the base of the class ``UserModel`` of each adapter.

The timed calls are the bound methods of the user's object. What differs between frameworks is how an object is seeded,
waited for and read, and where its state is.
"""

from .. import variables
from ..errors import CellFailure
from ..model import arrays, blob, construct
from .base import SIXTEEN_BITS, Implementation

METHODS = ("forward", "train", "outputs", "loss", "state", "load_state")
DEPTH = 4  # of lists and dicts in an attribute


class UserModel(Implementation):
    """The user's object of one framework, on one case and one device."""

    slug = "model"
    kind = "flexible"
    cells = ()
    framework = ""
    label = ""  # the framework, in a sentence
    stateful = "no attribute holds weights"  # why a state may be missing
    can_be_captured = False
    keeps_compiled = False  # the phase times what compilers have kept on disk

    @classmethod
    def concerns(cls, case):
        return case.get("family") == "model" and cls.framework in case["classes"]

    @classmethod
    def lacks(cls, case, release, device, precision):
        if not cls.concerns(case):
            return "framework-lacks", "{} computes networks of users only".format(cls.slug)
        if precision in SIXTEEN_BITS and cls.framework not in case["takes_precision"]:
            text = "{} takes no `precision`: give its constructor that parameter, and compute in {} where it is {!r}"
            return "precision-lacks", text.format(case["classes"][cls.framework], precision, precision)
        if precision in SIXTEEN_BITS:
            return cls.lacks_release(release, device)
        return cls.lacks_here(release, device, precision)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation; nobody has published times of a user's network."""
        raise CellFailure("crash", "a user's network has no published times")

    def __init__(self, case, data, weights, device, precision):
        """Seed the generators and build the user's object.

        Args:
            case: its specification.
            data: the user's module.
            weights: what the file's ``weights`` returned; None without.
            device: ``cpu`` or ``cuda``.
            precision: a precision of Implementation, or ``fp64``.
        """
        self.case, self.device, self.precision = case, device, precision
        self.first_state = None  # what ``reset`` puts back
        self.prepare(device, precision)
        construct.seed_generators(case["seed"], self.seed)
        with variables.watched():
            self.model = construct.build(data, case, self.framework, weights, device, precision)
        if self.model is None:
            name = case["classes"][self.framework]
            raise CellFailure("crash", "{}() returned None: return an object with forward() or train()".format(name))
        self.methods = {name: self.method(name) for name in METHODS}
        for phase in ("forward", "train"):
            setattr(self, phase, self.timed(self.methods[phase] or self._missing(phase)))

    def method(self, name):
        """Return a method of the user's object; None where it has none, or only the framework's of that name."""
        bound = getattr(self.model, name, None)
        if not callable(bound):
            return None
        if name in getattr(self.model, "__dict__", {}):
            return bound
        for kind in type(self.model).__mro__:
            if name in vars(kind):
                return None if kind.__module__.partition(".")[0] in FRAMEWORK_MODULES else bound
        return bound

    def _missing(self, phase):
        text = "{} has no {}()".format(self.case["classes"][self.framework], phase)

        def missing():
            raise CellFailure("crash", text)

        return missing

    def read_loss(self, returned):
        """Return the loss as a float, given what ``train`` has returned.

        Raises:
            CellFailure: there is no loss, or it is no number.
        """
        method = "loss" if self.methods["loss"] else "train"
        value = self.methods["loss"]() if self.methods["loss"] else returned
        if value is None:
            raise CellFailure("crash", "{}() returned None: return the loss".format(method))
        try:
            array = arrays.plain(value, method, self.as_array)
        except CellFailure:
            text = "{}() returned a {}: return the loss, a single number"
            raise CellFailure("crash", text.format(method, type(value).__name__)) from None
        if array.size != 1:
            text = "{}() returned an array of the shape {}: return the loss, a single number"
            raise CellFailure("crash", text.format(method, array.shape))
        return float(array.reshape(()))

    def outputs(self):
        """Return [(name, array)] of the outputs, by the method that ``forward`` times unless the user has ``outputs``."""
        method = "outputs" if self.methods["outputs"] else "forward"
        return arrays.named(self.methods[method](), method, self.as_array)

    def has_outputs(self):
        """Return whether there are outputs to compare."""
        return bool(self.methods["outputs"] or self.methods["forward"])

    def state(self):
        """Return [(name, array)] of the state: the user's, or the default; empty where there is none."""
        if self.methods["state"]:
            return sorted(arrays.named(self.methods["state"](), "state", self.as_array))
        return [(name, arrays.plain(read(), name, self.as_array)) for name, (read, _) in sorted(self.variables().items())]

    def load_state(self, state):
        """Put back a state that an object of the same framework has given.

        Raises:
            CellFailure: class ``wrong-result``, where it has other names or shapes.
        """
        if self.methods["load_state"]:
            self.methods["load_state"]({name: blob.copied(array) for name, array in state})
            return
        variables, given = self.variables(), dict(state)
        for name in sorted(set(given) ^ set(variables)):
            if name in given and given[name].dtype.kind != "f":
                continue  # a counter: ``num_batches_tracked`` came with PyTorch 0.4.1
            has = "has no {}, which the base's has" if name in given else "has {}, which the base's has not"
            if name in given or arrays.plain(variables[name][0](), name, self.as_array).dtype.kind == "f":
                raise CellFailure("wrong-result", "the state of this environment " + has.format(name))
        for name in sorted(set(given) & set(variables)):
            read, write = variables[name]
            shape = arrays.plain(read(), name, self.as_array).shape
            if shape != given[name].shape:
                text = "{} has the shape {}, and {} in the base's state"
                raise CellFailure("wrong-result", text.format(name, shape, given[name].shape))
            write(blob.copied(given[name]))
        self.written()

    def reset(self):
        """Put back the state that the first call had, where it is known."""
        if self.first_state is not None:
            self.load_state(self.first_state)

    def entries(self, name, value, depth=DEPTH):
        """Yield (name, entry) of everything in a value of an attribute: itself, or what its lists and dicts hold."""
        if isinstance(value, dict) and depth:
            for key in sorted(value, key=str):
                for pair in self.entries("{}.{}".format(name, key), value[key], depth - 1):
                    yield pair
        elif isinstance(value, (list, tuple)) and depth:
            for index, entry in enumerate(value):
                for pair in self.entries("{}.{}".format(name, index), entry, depth - 1):
                    yield pair
        else:
            yield name, value

    def attributes(self):
        """Yield (name, entry) of the user's object itself, with an empty name, and of all its attributes."""
        yield "", self.model
        for name, value in sorted(getattr(self.model, "__dict__", {}).items()):
            for pair in self.entries(name, value):
                yield pair

    # What an adapter has of its framework:

    def prepare(self, device, precision):
        """Select the device and the arithmetic, before anything is built."""

    def seed(self, number):
        """Seed the framework's generator."""

    def timed(self, method):
        """Return what is called in place of a user's method: the method, unless ``synchronize`` needs its result."""
        return method

    def as_array(self, value):
        """Return a tensor of the framework as an array; None for what is none."""

    def variables(self):
        """Return name -> (function that returns a tensor, function that writes an array into it) of the default state."""
        return {}

    def written(self):
        """Complete what the functions of ``variables`` have written."""


FRAMEWORK_MODULES = ("torch", "tensorflow", "keras", "tf_keras", "jax", "flax", "equinox", "theano", "lasagne", "pytorch_lightning")
"""Packages whose methods are none of the user's: ``nn.Module.train`` makes no step."""
