"""Run PyTorch's implementations with and without an error in them; started by test_torch in an environment's Python.

Arguments: the folder of the harness, and a JSON object of questions: name -> ``case``, ``slugs`` and ``plants``, names
of functions below. Prints one: name -> slug -> plant -> ``class`` (ok, or the failure's), ``reason`` and the errors.
"""

import contextlib
import json
import sys

import numpy

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, worker
from harness.errors import CellFailure
from harness.verify import reference, tolerance
from harness.adapters.torch import compat, network, training


@contextlib.contextmanager
def patched(module, name, value):
    """Replace one name of a module."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def weights(change):
    """Return a plant that changes the weights, in PyTorch's layout, on their way into a network."""
    convert = network.to_torch

    def planted(case, data):
        def spoilt(canonical):
            found = {name: array.copy() for name, array in convert(canonical).items()}
            change(found, case["hidden"])
            return found

        return patched(network, "to_torch", spoilt)

    return planted


def swap_gates(found, hidden):
    """Swap the first two gates of the first layer."""
    for name in ("layer0/kernel", "layer0/recurrent", "layer0/bias"):
        old = found[name].copy()
        found[name][:hidden], found[name][hidden : 2 * hidden] = old[hidden : 2 * hidden], old[:hidden]


def transpose(found, hidden):
    """Forget to transpose the recurrent kernel of a plain RNN."""
    found["layer0/recurrent"] = found["layer0/recurrent"].T.copy()


def lose_bias(found, hidden):
    """Lose the bias of the first layer."""
    found["layer0/bias"] *= 0


def lose_forget_bias(found, hidden):
    """Drop the forget bias of the first layer."""
    found["layer0/bias"][hidden : 2 * hidden] -= 1


def swap_ways(found, hidden):
    """Give the way back the weights of the other."""
    for part in ("kernel", "recurrent", "bias"):
        one, other = "layer0/" + part, "layer0/reverse/" + part
        found[one], found[other] = found[other], found[one]


def shift_words(found, hidden):
    """Look up the word beside the right one."""
    found["embedding"] = numpy.roll(found["embedding"], 1, axis=0)


def nothing(case, data):
    """Plant no error."""
    return contextlib.suppress()


def forward(case, data):
    """Let inference alone say something else; training is right."""
    right = compat.inference
    return patched(compat, "inference", lambda call: right(call) * 1.01)


def even(case, data):
    """Take all samples to be as long."""
    data["lengths"] = numpy.full_like(data["lengths"], case["steps"])
    return contextlib.suppress()


def forgetful(case, data):
    """Carry no states from step to step."""
    return patched(compat, "detached", lambda states: None)


def unclipped(case, data):
    """Clip nothing."""
    return patched(training, "clipper", lambda case, trained: None)


def second_bias(case, data):
    """Leave PyTorch's second bias as it was drawn."""
    return patched(network, "SECOND_BIAS", "none")


PLANTS = {found.__name__: found for found in (nothing, forward, even, forgetful, unclipped, second_bias)}
for changed in (swap_gates, transpose, lose_bias, lose_forget_bias, swap_ways, shift_words):
    PLANTS[changed.__name__] = weights(changed)


def verdict(slug, case, truth, plant):
    """Return what the check says of an implementation with an error planted in it."""
    data, canonical = cases.materialise(case)
    truth = dict(truth, lengths=data.get("lengths"))
    with PLANTS[plant](case, data):
        try:
            program = worker.implementation("torch", slug)(case, data, canonical, "cpu", "fp32")
            found = tolerance.same_computation(program, truth, "fp32")
        except CellFailure as failure:
            return {"class": failure.kind, "reason": failure.reason}
    errors = [found["loss_error"], max(found["gradient_errors"].values()), found["forward_error"]]
    return {"class": "ok", "reason": None, "errors": errors}


def answer(case, slugs, plants):
    """Return slug -> plant -> verdict."""
    truth = reference.compute(case)
    return {slug: {plant: verdict(slug, case, truth, plant) for plant in plants} for slug in slugs}


def main():
    """Answer all questions with one line of JSON."""
    adapters.find("torch").load(1)
    questions = json.loads(sys.argv[2])
    print(json.dumps({name: answer(**asked) for name, asked in questions.items()}, sort_keys=True))


main()
