"""How far results may be from the base's, where rounding or random numbers move them: the base shows that by itself.

The base repeats its calls from a state that is moved by one rounding, and with generators of other seeds. A result that
neither moves has to agree within the tolerance of its kind.
"""

import traceback

import numpy

from . import arrays, builder, carried, compare, moved, trained

ROUNDINGS = 20
"""Times as far as one rounding of each number of the state may results be moved by all roundings of a computation."""
SEEDS = 6
REACH = 4
"""Results of SEEDS other seeds are some distances away from those of the first one. What is farther away than the farthest
of them by REACH times their range is no result of another seed: of normal numbers, 1 in 3,000 is so far away, and of arrays
fewer, because their distances are nearly equal."""
RANDOM = "random numbers influence {}: a difference is allowed up to what other seeds cause in the base"


class Allowed(object):
    """The largest errors of results that need more than the tolerance of their kind.

    Attributes:
        wider: group -> name -> largest error; the groups are ``outputs``, ``losses``, ``state`` and ``trained``.
        random: what depends on random numbers, for a sentence; empty where nothing does.
        varying: (group, name) of each result that does.
        shapeless: whether random numbers decide about the shapes of results.
    """

    def __init__(self) -> "None":
        """Widen nothing."""
        self.wider, self.random, self.varying, self.shapeless = {}, "", [], False

    def widen(self, errors, limits, factor=1.0):
        """Allow ``factor`` times each error, where that is more than is allowed already; ``limits`` returns the default."""
        for group, name in errors:
            limit = min(factor * errors[group, name], trained.UNLIMITED)
            if limit > max(limits(group), self.of(group, name, 0.0)):
                self.wider.setdefault(group, {})[name] = limit

    def round(self, errors, limits):
        """Allow what roundings change, given the errors of one; where it decides about arrays of the state, more to all."""
        names = [key for key in errors if key[0] == "state"]
        if any(errors[key] > limits("state") for key in names):
            self.widen({key: trained.COARSE for key in names}, limits)
        self.widen(errors, limits, ROUNDINGS)

    def vary(self, of_seed, limits):
        """Allow what other seeds change; ``of_seed`` returns the errors of one, from 1 on, and ``limits`` the default."""
        seeds = [of_seed(1)]
        usual = {key: self.of(key[0], key[1], limits(key[0])) for key in seeds[0]}
        if all(seeds[0][key] <= usual[key] for key in usual):
            return
        seeds += [of_seed(number) for number in range(2, SEEDS + 1)]
        by_name = {key: [each.get(key, 0.0) for each in seeds] for key in sorted(usual)}
        self.varying = [key for key in by_name if max(by_name[key]) > usual[key]]
        self.shapeless = any(numpy.isinf(by_name[key]).any() for key in self.varying if key[0] in ("outputs", "trained"))
        self.widen({key: reach(by_name[key]) for key in self.varying}, limits)
        self.random = RANDOM.format(in_words(self.varying))

    def of(self, group: "str", name: "str", default: "float") -> "float":
        """Return the largest error of a result."""
        return max(default, self.wider.get(group, {}).get(name, 0.0))


def find(build: "object", precision: "str", base: "builder.Run", state: "list", limits: "dict", apart: "bool") -> "Allowed":
    """Return what is allowed.

    Args:
        build: a Builder.
        precision: of the programs.
        base: what the base has given.
        state: its first state; empty where none could be read.
        limits: see ``compare.limits``.
        apart: see ``builder.run``.
    """
    case, allowed = build.case, Allowed()

    def default(group):
        return {"losses": limits["loss"], "state": trained.default_limit(case, precision)}.get(group, limits["forward"])

    def errors_of(make, start):
        return errors(builder.run(make, start, case, apart), base, state, precision, limits)

    def of_seed(number, start=state):
        return errors_of(lambda: build.with_other_generators(precision, number), start)

    if precision == "fp32":
        make, start = moved_by_rounding(build, precision, state)
        try:
            both = of_seed(1, start) if state else {}  # in most networks, neither decides about anything
            if both and all(ROUNDINGS * both[key] <= default(key[0]) for key in both):
                return allowed
            allowed.round(errors_of(make, start), default)
        except Exception:  # a rounding of the data may change the shapes of what is found in them
            traceback.print_exc()
    allowed.vary(of_seed, default)
    return allowed


def reach(errors):
    """Return the largest error of a result, given those of other seeds."""
    largest = max(errors)
    return largest + REACH * (largest - min(errors)) if numpy.isfinite(largest) else trained.UNLIMITED


def moved_by_rounding(build, precision, state):
    """Return (what makes a program, the state it starts from), one of which is moved by a rounding of each number."""
    if state:
        return (lambda: build(precision)), moved.state(state, moved.ROUNDING[precision], build.case["seed"])
    return (lambda: build.with_moved_data(precision, moved.ROUNDING[precision])), state


def errors(run, base, first, precision, limits):
    """Return (group, name) -> error of each result of a run; infinity for outputs of another name or shape."""
    by_name = {}
    for group, values, expected in (("outputs", run.outputs, base.outputs), ("trained", run.trained, base.trained)):
        values = dict(values)
        for name, array in expected:
            same = name in values and values[name].shape == array.shape
            by_name[group, name] = compare.error_of(values[name], array, limits) if same else float("inf")
    for step, (value, expected) in enumerate(zip(run.losses, base.losses), 1):
        by_name["losses", str(step)] = compare.loss_error(value, expected)
    for name, value, expected, start in trained.compared(run.state, base.state, first):
        by_name["state", name] = trained.error(value, expected, start, precision)
    return by_name


def in_words(keys):
    """Return what depends on random numbers.

    >>> in_words([("losses", "1"), ("outputs", ""), ("state", "weight"), ("trained", "")])
    'the loss of step 1 and the output'
    """
    names = [arrays.label(name) if group == "outputs" else "the loss of step " + name for group, name in keys
             if group in ("outputs", "losses")]
    return carried.listed(names) if names else "the state after the steps"
