"""A user's own network as an implementation: the base of the class ``UserModel`` of each adapter.

The timed calls are the bound methods of the user's object. What differs between frameworks is how an object is seeded,
waited for and read, and where its state is.
"""

import os
import time

from .. import variables
from ..errors import CellFailure
from ..model import arrays, blob, construct, drawn, generators, held, mistakes, state
from .base import SIXTEEN_BITS, Implementation

METHODS = ("forward", "train", "outputs", "loss", "state", "load_state")
OUTPUTS = "_outputs"  # behind the name of a phase of the file: the method whose outputs are compared in place of its own
NOT_COMPARED, IN_BASE = "{} is {}, and is not compared", "no tensor in the base"


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
    def slugs(cls, case):
        """See Implementation: the variants that the file names for the framework; the class's own slug without them."""
        return tuple(variant["name"] for variant in case.get("variants", {}).get(cls.framework, ())) or (cls.slug,)

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; the ``variant`` of the case may not be in all releases."""
        if not cls.concerns(case):
            return "framework-lacks", "{} computes networks of users only".format(cls.slug)
        skip = cls.lacks_variant(case, release)
        if skip:
            return skip
        if precision in SIXTEEN_BITS and cls.framework not in case["takes_precision"]:
            text = "{} takes no `precision`: give its constructor that parameter, and compute in {} where it is {!r}"
            return "precision-lacks", text.format(case["classes"][cls.framework], precision, precision)
        if precision in SIXTEEN_BITS:
            return cls.lacks_release(release, device)
        return cls.lacks_here(release, device, precision)

    @classmethod
    def lacks_variant(cls, case, release):
        """Return what ``lacks`` does of the ``variant`` of a case; None where every release has it."""
        variants = {variant["name"]: variant for variant in case.get("variants", {}).get(cls.framework, ())}
        variant = variants.get(case.get("variant"))
        if variant is None:
            return None
        since, before = variant["since"], variant["before"]
        release = without_zeros(release)
        if release < without_zeros(since):
            return "framework-lacks", "{} names {} from {} on".format(case["entry"], variant["name"], in_words(since))
        if before and release >= without_zeros(before):
            return "framework-lacks", "{} names {} before {}".format(case["entry"], variant["name"], in_words(before))
        return None

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation; nobody has published times of a user's network."""
        raise CellFailure("crash", "a user's network has no published times")

    def __init__(self, case, data, weights, device, precision):
        """Seed the generators and build the user's object.

        Args:
            case: its specification; a ``method`` in it is called where others call ``forward``, and alone: it is a phase
                that the file names itself.
            data: the user's module.
            weights: what the file's ``weights`` returned; None without.
            device: ``cpu`` or ``cuda``.
            precision: a precision of Implementation, or ``fp64``.
        """
        self.case, self.device, self.precision = case, device, precision
        self.first_state = None  # what ``reset`` puts back
        self.loaded = state.Loaded()  # what became of the state that was loaded last
        self.left_out = []  # (name, what it is) of what is no tensor in the outputs
        self.not_in_base = []  # names of outputs that are no tensors in the base
        self.building_seconds = None  # of the call that has made the weights, where none were there
        self.generators = None  # functions that put back the generators that the object holds
        self.folder = folder_of(data, case)
        self.prepare(device, precision)
        construct.seed_generators(case["seed"], self.seed)
        with variables.watched():
            self.model = construct.build(data, case, self.framework, weights, device, precision)
        if self.model is None:
            name = case["classes"][self.framework]
            text = "{}() returned None: return an object with forward() or train()".format(name)
            raise CellFailure("crash", mistakes.defined_at(getattr(data, name, None), self.folder) + text)
        self.methods = {name: self.method(name) for name in METHODS}
        self.forward_name = case.get("method", "forward")
        self.outputs_name = "outputs"
        if "method" in case:
            self.outputs_name = case["method"] + OUTPUTS
            outputs = self.method(self.outputs_name)
            self.methods.update(forward=self.method(case["method"]), train=None, outputs=outputs, loss=None)
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
                return None if held.top_module(kind) in held.FRAMEWORK_MODULES else bound
        return bound

    def _missing(self, phase):
        name = self.forward_name if phase == "forward" else phase
        text = "{} has no {}()".format(self.case["classes"][self.framework], name)

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
        with self.located(method):
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
        """Return [(name, array)] of the outputs, by the method that ``forward`` times unless the user has ``outputs``.

        What is no tensor in them is not compared; ``notes`` names it.
        """
        method = "outputs" if self.methods["outputs"] else "forward"
        return self.named_outputs(self.methods[method](), method)

    def named_outputs(self, value, method="forward"):
        """Return [(name, array)] of what a method has returned."""
        self.left_out = []
        with self.located(method):
            name = {"forward": self.forward_name, "outputs": self.outputs_name}.get(method, method)
            named = arrays.named(value, name, self.as_array, self.left_out)
        compared = arrays.without(named, self.not_in_base)
        self.left_out += [(name, IN_BASE) for name in self.not_in_base if len(compared) < len(named)]
        return compared

    def has_outputs(self):
        """Return whether there are outputs to compare; not where a forward pass fails, see ``model.attempts``."""
        return bool(self.methods["outputs"] or self.methods["forward"]) and "forward" not in self.case.get("fails", ())

    def located(self, method):
        """Return the context in which a failure begins with the line of the user's method."""
        return mistakes.located(self.methods[method], self.folder)

    def notes(self):
        """Return what was not compared, as sentences."""
        note = self.loaded.note()
        named = sorted(set(self.left_out))
        return ([note] if note else []) + [NOT_COMPARED.format(arrays.label(name), kind) for name, kind in named]

    def complete(self):
        """Call the network once where its first call makes its weights, so that they are there to be read and written."""
        self.keep_generators()
        if self.building_seconds is None and self.is_unbuilt():
            start = time.perf_counter()
            (self.methods["forward"] or self.methods["train"] or self.methods["outputs"])()
            self.synchronize()
            self.building_seconds = time.perf_counter() - start

    def state(self):
        """Return [(name, array)] of the state: the user's, or the default; empty where there is none."""
        self.complete()
        if not self.methods["state"]:
            return state.read(self.stores(), self.as_array)
        value = self.methods["state"]()
        with self.located("state"):
            return sorted(arrays.named(value, "state", self.as_array), key=lambda pair: pair[0])

    def load_state(self, values):
        """Put a state into the network that an object of the same framework has given; ``loaded`` says what became of it.

        Raises:
            CellFailure: class ``wrong-result``, where weights have another shape.
        """
        self.complete()
        if self.methods["load_state"]:
            self.methods["load_state"]({name: blob.copied(array) for name, array in values})
            self.loaded = state.Loaded(len(values))
        else:
            self.loaded = state.load(self.stores(), values, self.as_array)
        self.put_generators_back()

    def draw_state(self):
        """Draw the weights by their names, as every environment does."""
        self.load_state(drawn.of(self.state(), self.case["seed"]))

    def reset(self):
        """Put back the state that the first call had, where it is known, and the generators that the object holds."""
        self.put_generators_back()
        if self.first_state is not None:
            loaded = self.loaded
            self.load_state(self.first_state)
            self.loaded = loaded

    def keep_generators(self, number=None):
        """Remember where the generators that the object holds stand, unless that is known; seed them first with a number."""
        if self.generators is None:
            among = generators.among([value for _, value in self.attributes()])
            for each in among if number is not None else ():
                generators.reseed(each, number)
            self.generators = [generators.kept(each) for each in among]

    def put_generators_back(self):
        """Put back the generators that the object holds to where they stood when the state was first read or written."""
        for put_back in self.generators or ():
            put_back()

    def attributes(self):
        """Return [(name, value)] of the user's object itself, with an empty name, and of all that it holds."""
        return list(held.walk(self.model, self.is_whole))

    # What an adapter has of its framework:

    def prepare(self, device, precision):
        """Select the device and the arithmetic, before anything is built."""

    def seed(self, number):
        """Seed the framework's generator."""

    def reset_metrics(self):
        """Have means over calls, which a framework reports as a loss, begin anew: not all of its releases report means."""

    def timed(self, method):
        """Return what is called in place of a user's method: the method, unless ``synchronize`` needs its result."""
        return method

    def as_array(self, value):
        """Return a tensor of the framework as an array; None for what is none."""

    def is_whole(self, value):
        """Return whether an object of a class of the user's is one of ``stores``, and is not looked into."""
        return False

    def is_unbuilt(self):
        """Return whether the network has weights that its first call makes."""
        return False

    @classmethod
    def draws(cls):
        """Return what the framework's generator draws from one key, as text; empty where programs pass no keys on."""
        return ""

    def stores(self):
        """Return the stores of the default state, see ``state.Store``."""
        return []


def without_zeros(release: "object") -> "tuple":
    """Return the numbers of a release without zeros at the end, so that 2.0 and 2.0.0 are the same.

    >>> without_zeros([2, 0, 0]), without_zeros((1, 12, 1))
    ((2,), (1, 12, 1))
    """
    numbers = tuple(release)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def in_words(release: "list") -> "str":
    """Return a release as it is written.

    >>> in_words([2, 0])
    '2.0'
    """
    return ".".join(map(str, release))


def folder_of(module: "object", case: "dict") -> "str":
    """Return the folder of the user's files; empty where the module is of no file."""
    path = getattr(module, "__file__", None) or ""
    return path[: -len(case["entry"])].rstrip(os.sep) if path and path.endswith(case.get("entry") or "/") else ""
