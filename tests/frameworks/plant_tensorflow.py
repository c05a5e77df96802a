"""Plants errors in the TensorFlow adapter and prints what the check reports; run by an environment.

Usage: ``python plant_tensorflow.py HARNESS_PARENT CASE_JSON PLANTS SLUGS``, both lists with commas. Prints slug -> plant
-> failure class, or ``ok``. It must run on every Python that TensorFlow supports.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, worker  # noqa: E402
from harness.errors import CellFailure  # noqa: E402
from harness.verify import reference, tolerance  # noqa: E402
from harness.adapters.tensorflow import losses, runtime  # noqa: E402

CASE = json.loads(sys.argv[2])
HIDDEN = CASE["hidden"]
RECURRENT = "layer0/gates/" if CASE["cell"] == "gru" else "layer0/"


def swap(array, other, first, second):
    """Exchange columns of two arrays, or of one."""
    kept = array[..., first].copy()
    array[..., first] = other[..., second]
    other[..., second] = kept


def gate(engine, implementation, case, data, arrays, settings):
    """Exchange the first two gates of the kernel."""
    kernel = arrays[RECURRENT + "kernel"]
    swap(kernel, kernel, slice(0, HIDDEN), slice(HIDDEN, 2 * HIDDEN))
    return engine(implementation, case, data, arrays, settings)


def bias(engine, implementation, case, data, arrays, settings):
    """Lose the bias."""
    arrays[RECURRENT + "bias"][:] = 0
    return engine(implementation, case, data, arrays, settings)


def forget(engine, implementation, case, data, arrays, settings):
    """Subtract the forget bias twice."""
    arrays["layer0/bias"][2 * HIDDEN : 3 * HIDDEN] -= case["forget_bias"]
    return engine(implementation, case, data, arrays, settings)


def ways(engine, implementation, case, data, arrays, settings):
    """Exchange the two directions."""
    swap(arrays["layer0/kernel"], arrays["layer0/reverse/kernel"], slice(None), slice(None))
    return engine(implementation, case, data, arrays, settings)


def lengths(engine, implementation, case, data, arrays, settings):
    """Give every sample the length of the longest."""
    return engine(implementation, case, dict(data, lengths=data["lengths"] * 0 + case["steps"]), arrays, settings)


def states(engine, implementation, case, data, arrays, settings):
    """Start every step from zero."""
    return engine(implementation, dict(case, carry=False), data, arrays, settings)


def clip(engine, implementation, case, data, arrays, settings):
    """Clip nothing."""
    return engine(implementation, dict(case, clip_value=0.0, clip_each=0.0, clip_norm=0.0), data, arrays, settings)


def rows(engine, implementation, case, data, arrays, settings):
    """Clip each array that TensorFlow holds as if it were one canonical tensor."""
    arrays_as_tensors = {name: [(name, len(array))] for name, array in arrays.items()}
    return engine(implementation, case, data, arrays, dict(settings, rows=arrays_as_tensors))


def slices(engine, implementation, case, data, arrays, settings):
    """Take the norm of an embedding's gradient without summing the slices of a word."""
    summed = losses.summed
    losses.summed = lambda tf, gradient: gradient
    try:
        program = engine(implementation, case, data, arrays, settings)
        program.train()  # traced here
        return program
    finally:
        losses.summed = summed


def forward(engine, implementation, case, data, arrays, settings):
    """Change the outputs of inference alone; training is right."""
    import tensorflow as tf

    if hasattr(tf, "Session"):
        identity = tf.identity
        tf.identity = lambda tensor: identity(tensor) * 1.01  # the engine has one, around the outputs
        try:
            return engine(implementation, case, data, arrays, settings)
        finally:
            tf.identity = identity
    program = engine(implementation, case, data, arrays, settings)
    predict = program._predict

    def predicted(first, training):
        outputs, last = predict(first, training)
        return outputs * (1.0 if training else 1.01), last

    program._predict = predicted
    return program


def nothing(engine, implementation, case, data, arrays, settings):
    """Plant no error."""
    return engine(implementation, case, data, arrays, settings)


class PlantedModule(object):
    """Replaces the module of the engine: its engine carries a planted error."""

    def __init__(self, module, plant):
        self.Engine = lambda *arguments: plant(module.Engine, *arguments)


def verdict(slug, plant, truth):
    """Return the failure class of the check, or ``ok``."""
    runtime.engine_module = lambda: PlantedModule(MODULE, plant)
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
    plants, slugs = sys.argv[3].split(","), sys.argv[4].split(",")
    print(json.dumps({slug: {name: verdict(slug, globals()[name], truth) for name in plants} for slug in slugs}))


adapters.find("tensorflow").load(1)
MODULE = runtime.engine_module()
main()
