"""Run by an environment's own Python: plants errors in the Keras adapter and asks the check what it sees.

Usage: ``python plant_keras.py HARNESS_PARENT QUESTIONS``, where QUESTIONS is JSON: name -> ``case``, ``slugs`` and
``plants``. Prints name -> slug -> plant -> ``class``, ``reason`` and ``errors`` (loss, gradients, outputs). It runs on
every Python that Keras runs on.
"""

import json
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, compile_cache, worker
from harness.errors import CellFailure
from harness.verify import reference, tolerance


def columns(program, name, first, second):
    """Exchange two blocks of columns, each as wide as the layer, of one array."""
    array = program.engine.arrays[program.layout.names.index(name)]
    hidden = program.case["hidden"]
    kept = array[..., first * hidden : (first + 1) * hidden].copy()
    array[..., first * hidden : (first + 1) * hidden] = array[..., second * hidden : (second + 1) * hidden]
    array[..., second * hidden : (second + 1) * hidden] = kept


def swap_gates(program):
    """Exchange the first two gates of the kernel."""
    columns(program, "layer0/kernel", 0, 1)


def transpose(program):
    """Transpose the recurrent kernel."""
    array = program.engine.arrays[program.layout.names.index("layer0/recurrent")]
    array[:] = array.T.copy()


def lose_bias(program):
    """Lose the bias."""
    program.engine.arrays[program.layout.names.index("layer0/bias")][:] = 0


def lose_forget_bias(program):
    """Take the forget bias off, as if the layer added it."""
    hidden = program.case["hidden"]
    program.engine.arrays[program.layout.names.index("layer0/bias")][hidden : 2 * hidden] -= 1


def swap_ways(program):
    """Exchange the two directions."""
    arrays, names = program.engine.arrays, program.layout.names
    there, back = names.index("layer0/kernel"), names.index("layer0/reverse/kernel")
    arrays[there], arrays[back] = arrays[back], arrays[there]


def nothing(program):
    """Plant no error."""


def second_bias(case, layer, data, arrays, masks, settings):
    """Train the second bias, too."""
    return case, layer, data, arrays, [None for _ in masks], settings


def even(case, layer, data, arrays, masks, settings):
    """Take every sample for as long as the longest."""
    return case, layer, dict(data, lengths=data["lengths"] * 0 + case["steps"]), arrays, masks, settings


def forgetful(case, layer, data, arrays, masks, settings):
    """Start every step from zero."""
    return dict(case, carry=False), layer, data, arrays, masks, settings


def unclipped(case, layer, data, arrays, masks, settings):
    """Clip nothing."""
    return dict(case, clip_value=0.0, clip_each=0.0, clip_norm=0.0), layer, data, arrays, masks, settings


def epsilon(case, layer, data, arrays, masks, settings):
    """Take the reference's epsilon for Keras's."""
    return case, layer, data, arrays, masks, dict(settings, epsilon=reference.ADAM["epsilon"])


BUILT = (second_bias, even, forgetful, unclipped, epsilon)  # what needs a program of its own


def verdict(program, truth):
    """Return what the check says of a program."""
    try:
        found = tolerance.same_computation(program, truth, "fp32")
    except CellFailure as failure:
        return {"class": failure.kind, "reason": failure.reason, "errors": []}
    errors = [found["loss_error"], max(found["gradient_errors"].values()), found["forward_error"]]
    return {"class": "ok", "reason": None, "errors": errors}


def answer(case, slug, plants):
    """Return plant -> verdict of one implementation."""
    truth = reference.compute(case)
    data, weights = cases.materialise(case)
    truth = dict(truth, lengths=data.get("lengths"))
    module = sys.modules["harness.adapters.keras"].engines()
    engine, found, program = module.Engine, {}, None
    for plant in [globals()[name] for name in plants]:
        if plant in BUILT:
            module.Engine = lambda *given: engine(*plant(*given))  # called in this turn of the loop
        if program is None or plant in BUILT:
            program = worker.implementation("keras", slug)(case, data, weights, "cpu", "fp32")
        module.Engine = engine
        kept = list(program.engine.arrays)
        program.engine.arrays = [array.copy() for array in kept]
        if plant not in BUILT:
            plant(program)
        found[plant.__name__] = verdict(program, truth)
        program.engine.arrays = kept
    return found


def main():
    """Print one line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        compile_cache.use(folder)
        adapters.find("keras").load(1)
        questions = json.loads(sys.argv[2])
        answers = {
            name: {slug: answer(asked["case"], slug, asked["plants"]) for slug in asked["slugs"]}
            for name, asked in questions.items()
        }
    print(json.dumps(answers))


main()
