"""Checks PyTorch's implementations with and without planted errors; test_torch runs it with an environment's Python.

Arguments: the folder of the harness, and a JSON object of questions: name -> ``case``, ``slugs`` and ``plants``, names
of functions below; ``precision`` is fp32 if it is missing. Prints a JSON object: name -> slug -> plant -> ``class`` (ok, or the failure's), ``reason`` and
``errors``.
"""

import contextlib
import json
import sys

import numpy

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, worker
from harness.errors import CellFailure
from harness.verify import reference, tolerance
from harness.adapters.torch import capture, compat, graphs, network, training


@contextlib.contextmanager
def patched(module, name, value):
    """Replace a name of a module within the block."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def weights(change):
    """Return a plant: ``change(arrays, hidden)`` alters the initial weights of a network, in PyTorch's layout."""
    convert = network.to_torch

    def planted(case, data):
        def to_torch(canonical):
            arrays = {name: array.copy() for name, array in convert(canonical).items()}
            change(arrays, case["hidden"])
            return arrays

        return patched(network, "to_torch", to_torch)

    return planted


def swap_gates(arrays, hidden):
    """Swap the first two gates of the first layer."""
    for name in ("layer0/kernel", "layer0/recurrent", "layer0/bias"):
        old = arrays[name].copy()
        arrays[name][:hidden], arrays[name][hidden : 2 * hidden] = old[hidden : 2 * hidden], old[:hidden]


def transpose(arrays, hidden):
    """Transpose the recurrent kernel of a plain RNN."""
    arrays["layer0/recurrent"] = arrays["layer0/recurrent"].T.copy()


def lose_bias(arrays, hidden):
    """Set the bias of the first layer to zero."""
    arrays["layer0/bias"] *= 0


def lose_forget_bias(arrays, hidden):
    """Subtract the forget bias of the first layer."""
    arrays["layer0/bias"][hidden : 2 * hidden] -= 1


def swap_ways(arrays, hidden):
    """Swap the weights of the two directions of the first layer."""
    for kind in ("kernel", "recurrent", "bias"):
        forward, backward = "layer0/" + kind, "layer0/reverse/" + kind
        arrays[forward], arrays[backward] = arrays[backward], arrays[forward]


def shift_words(arrays, hidden):
    """Shift the rows of the embedding by one word."""
    arrays["embedding"] = numpy.roll(arrays["embedding"], 1, axis=0)


def nothing(case, data):
    """Plant no error."""
    return contextlib.suppress()


def forward(case, data):
    """Scale the outputs of inference; training stays correct."""
    correct = compat.inference
    return patched(compat, "inference", lambda call: correct(call) * 1.01)


def forward_by_a_twentieth(case, data):
    """Scale the outputs of inference by more than the roundings of 16 bits; training stays correct."""
    correct = compat.inference
    return patched(compat, "inference", lambda call: correct(call) * 1.05)


def even(case, data):
    """Give all samples the full length."""
    data["lengths"] = numpy.full_like(data["lengths"], case["steps"])
    return contextlib.suppress()


def forgetful(case, data):
    """Start every step from zero states."""
    return patched(compat, "detached", lambda states: None)


def unclipped(case, data):
    """Clip nothing."""
    return patched(training, "clipper", lambda case, trained: None)


def second_bias(case, data):
    """Keep PyTorch's initial second bias."""
    return patched(network, "SECOND_BIAS", "none")


ALIKE = (nothing, forward, forward_by_a_twentieth, even, forgetful, unclipped, second_bias)
PLANTS = {plant.__name__: plant for plant in ALIKE}
for change in (swap_gates, transpose, lose_bias, lose_forget_bias, swap_ways, shift_words):
    PLANTS[change.__name__] = weights(change)


class Rerun:
    """Stands in for a CUDA graph on a CPU: a replay makes the call again and writes into the results of the first."""

    def __init__(self, call, prepare):
        self.call, self.prepare, self.result = call, prepare, None
        for _ in range(capture.WARM_UP_CALLS):
            prepare()
            call()

    def replay(self):
        """Call again."""
        self.prepare()
        result = self.call()
        self.result = written(self.result, result)


def written(target, source):
    """Return ``target`` with the numbers of ``source``, or the source if there is no target."""
    if target is None or source is None:
        return source
    if isinstance(source, dict):
        return {name: written(target[name], source[name]) for name in source}
    if isinstance(source, (list, tuple)):
        return type(source)(written(*pair) for pair in zip(target, source))
    return target.data.copy_(source.data)


def verdict(slug, case, truth, plant, precision):
    """Return the verdict of the check on an implementation with a planted error."""
    data, canonical = cases.materialise(case)
    truth = dict(truth, lengths=data.get("lengths"), cell=case["cell"])
    with PLANTS[plant](case, data):
        try:
            program = worker.implementation("torch", slug)(case, data, canonical, "cpu", precision)
            facts = tolerance.same_computation(program, truth, precision)
        except CellFailure as failure:
            return {"class": failure.kind, "reason": failure.reason}
    errors = [facts["loss_error"], max(facts["gradient_errors"].values()), facts["forward_error"]]
    return {"class": "ok", "reason": None, "errors": errors}


def answer(case, slugs, plants, precision="fp32"):
    """Return slug -> plant -> verdict."""
    truth = reference.compute(case)
    return {slug: {plant: verdict(slug, case, truth, plant, precision) for plant in plants} for slug in slugs}


def main():
    """Print the answers to all questions as one line of JSON."""
    adapters.find("torch").load(1)
    graphs.Graphed.recording = Rerun
    questions = json.loads(sys.argv[2])
    print(json.dumps({name: answer(**question) for name, question in questions.items()}, sort_keys=True))


main()
