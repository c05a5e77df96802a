"""Plants errors in the Keras adapter and prints what the check reports; run by an environment's Python.

Usage: ``python plant_keras.py HARNESS_PARENT QUESTIONS``, where QUESTIONS is JSON: name -> ``case``, ``slugs`` and
``plants``. Prints name -> slug -> plant -> ``class``, ``reason`` and ``errors`` (loss, gradients, outputs). It must
run on every Python that Keras supports.
"""

import json
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, compile_cache, worker
from harness.cases import adam
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
    """Subtract the forget bias, as if the layer added it."""
    hidden = program.case["hidden"]
    program.engine.arrays[program.layout.names.index("layer0/bias")][hidden : 2 * hidden] -= 1


def swap_ways(program):
    """Exchange the two directions."""
    arrays, names = program.engine.arrays, program.layout.names
    forward, backward = names.index("layer0/kernel"), names.index("layer0/reverse/kernel")
    arrays[forward], arrays[backward] = arrays[backward], arrays[forward]


def nothing(program):
    """Plant no error."""


def second_bias(case, layer, data, arrays, masks, settings):
    """Train the second bias, too."""
    return case, layer, data, arrays, [None for _ in masks], settings


def even(case, layer, data, arrays, masks, settings):
    """Give every sample the length of the longest."""
    return case, layer, dict(data, lengths=data["lengths"] * 0 + case["steps"]), arrays, masks, settings


def forgetful(case, layer, data, arrays, masks, settings):
    """Start every step from zero."""
    return dict(case, carry=False), layer, data, arrays, masks, settings


def unclipped(case, layer, data, arrays, masks, settings):
    """Clip nothing."""
    return dict(case, clip_value=0.0, clip_each=0.0, clip_norm=0.0), layer, data, arrays, masks, settings


def epsilon(case, layer, data, arrays, masks, settings):
    """Give Keras the epsilon of the reference."""
    return case, layer, data, arrays, masks, dict(settings, epsilon=adam.EPSILON)


BUILT = (second_bias, even, forgetful, unclipped, epsilon)  # these need a new program


def verdict(program, truth):
    """Return what the check reports for a program."""
    try:
        errors = tolerance.same_computation(program, truth, "fp32")
    except CellFailure as failure:
        return {"class": failure.kind, "reason": failure.reason, "errors": []}
    worst = [errors["loss_error"], max(errors["gradient_errors"].values()), errors["forward_error"]]
    return {"class": "ok", "reason": None, "errors": worst}


def answer(case, slug, plants):
    """Return plant -> verdict of one implementation."""
    truth = reference.compute(case)
    data, weights = cases.materialise(case)
    truth = dict(truth, lengths=data.get("lengths"))
    module = sys.modules["harness.adapters.keras.runtime"].engine_module()
    engine, verdicts, program = module.Engine, {}, None
    for plant in [globals()[name] for name in plants]:
        if plant in BUILT:
            module.Engine = lambda *arguments: engine(*plant(*arguments))  # called in this turn of the loop
        if program is None or plant in BUILT:
            program = worker.implementation("keras", slug)(case, data, weights, "cpu", "fp32")
        module.Engine = engine
        kept = list(program.engine.arrays)
        program.engine.arrays = [array.copy() for array in kept]
        if plant not in BUILT:
            plant(program)
        verdicts[plant.__name__] = verdict(program, truth)
        program.engine.arrays = kept
    return verdicts


def main():
    """Print one line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        compile_cache.use(folder)
        adapters.find("keras").load(1)
        questions = json.loads(sys.argv[2])
        answers = {
            name: {slug: answer(question["case"], slug, question["plants"]) for slug in question["slugs"]}
            for name, question in questions.items()
        }
    print(json.dumps(answers))


main()
