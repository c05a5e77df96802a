"""Run by an environment's own Python: plants errors in the TensorFlow adapter and asks the check what it sees.

Usage: ``python plant_tensorflow.py HARNESS_PARENT CASE_JSON PLANTS SLUGS``, both lists with commas. Prints slug -> plant
-> failure class, or ``ok``. It runs on every Python that TensorFlow runs on.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, worker  # noqa: E402
from harness.errors import CellFailure  # noqa: E402
from harness.verify import reference, tolerance  # noqa: E402
from harness.adapters import tensorflow as adapter  # noqa: E402
from harness.adapters.tensorflow import losses  # noqa: E402

CASE = json.loads(sys.argv[2])
HIDDEN = CASE["hidden"]
RECURRENT = "layer0/gates/" if CASE["cell"] == "gru" else "layer0/"


def swap(array, other, first, second):
    """Exchange columns of two arrays, or of one."""
    kept = array[..., first].copy()
    array[..., first] = other[..., second]
    other[..., second] = kept


def gate(engine, slug, case, data, arrays, settings):
    """Exchange the first two gates of the kernel."""
    kernel = arrays[RECURRENT + "kernel"]
    swap(kernel, kernel, slice(0, HIDDEN), slice(HIDDEN, 2 * HIDDEN))
    return engine(slug, case, data, arrays, settings)


def bias(engine, slug, case, data, arrays, settings):
    """Lose the bias."""
    arrays[RECURRENT + "bias"][:] = 0
    return engine(slug, case, data, arrays, settings)


def forget(engine, slug, case, data, arrays, settings):
    """Take the forget bias off twice."""
    arrays["layer0/bias"][2 * HIDDEN : 3 * HIDDEN] -= case["forget_bias"]
    return engine(slug, case, data, arrays, settings)


def ways(engine, slug, case, data, arrays, settings):
    """Exchange the two directions."""
    swap(arrays["layer0/kernel"], arrays["layer0/reverse/kernel"], slice(None), slice(None))
    return engine(slug, case, data, arrays, settings)


def lengths(engine, slug, case, data, arrays, settings):
    """Take every sample for as long as the longest."""
    return engine(slug, case, dict(data, lengths=data["lengths"] * 0 + case["steps"]), arrays, settings)


def states(engine, slug, case, data, arrays, settings):
    """Start every step from zero."""
    return engine(slug, dict(case, carry=False), data, arrays, settings)


def clip(engine, slug, case, data, arrays, settings):
    """Clip nothing."""
    return engine(slug, dict(case, clip_value=0.0, clip_each=0.0, clip_norm=0.0), data, arrays, settings)


def rows(engine, slug, case, data, arrays, settings):
    """Clip what TensorFlow holds in one array as if it were one tensor."""
    whole = {name: [(name, len(array))] for name, array in arrays.items()}
    return engine(slug, case, data, arrays, dict(settings, rows=whole))


def slices(engine, slug, case, data, arrays, settings):
    """Take the norm of an embedding's gradient without summing the slices of a word."""
    summed = losses.summed
    losses.summed = lambda tf, slope: slope
    try:
        program = engine(slug, case, data, arrays, settings)
        program.train()  # traced here
        return program
    finally:
        losses.summed = summed


def forward(engine, slug, case, data, arrays, settings):
    """Let inference alone say something else; training is right."""
    import tensorflow as tf

    if hasattr(tf, "Session"):
        identity = tf.identity
        tf.identity = lambda found: identity(found) * 1.01  # the engine has one, around what forward says
        try:
            return engine(slug, case, data, arrays, settings)
        finally:
            tf.identity = identity
    program = engine(slug, case, data, arrays, settings)
    predict = program._predict

    def predicted(first, training):
        said, last = predict(first, training)
        return said * (1.0 if training else 1.01), last

    program._predict = predicted
    return program


def nothing(engine, slug, case, data, arrays, settings):
    """Plant no error."""
    return engine(slug, case, data, arrays, settings)


class Engines(object):
    """Stands in for the module of engines: its engine carries a planted error."""

    def __init__(self, module, plant):
        self.Engine = lambda *given: plant(module.Engine, *given)


def verdict(slug, plant, truth):
    """Return what the check says."""
    adapter.engines = lambda: Engines(MODULE, plant)
    data, weights = cases.materialise(CASE)
    truth = dict(truth, lengths=data.get("lengths"))
    try:
        program = worker.implementation("tensorflow", slug)(CASE, data, weights, "cpu", "fp32")
        tolerance.same_computation(program, truth, "fp32")
    except CellFailure as failure:
        return failure.kind
    return "ok"


def main():
    """Print one line of JSON."""
    truth = reference.compute(CASE)
    named = sys.argv[3].split(",")
    print(
        json.dumps(
            {slug: {name: verdict(slug, globals()[name], truth) for name in named} for slug in sys.argv[4].split(",")}
        )
    )


adapters.find("tensorflow").load(1)
MODULE = adapter.engines()
main()
