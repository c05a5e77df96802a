"""Run by an environment's own Python: plant errors into the conversion of weights, print what the check says of each.

Arguments: the folder that holds ``harness``, a case as JSON, slugs. Prints slug -> error -> ``ok`` or a failure class.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, check, child, reference, workloads  # noqa: E402
from harness.adapters import torch_networks  # noqa: E402

convert = torch_networks.to_torch


def nothing(weights, hidden):
    """Plant no error."""


def gates(weights, hidden):
    """Swap the gates i and f."""
    for name in ("layer0/kernel", "layer0/recurrent", "layer0/bias"):
        old = weights[name].copy()
        weights[name][:hidden], weights[name][hidden : 2 * hidden] = old[hidden : 2 * hidden], old[:hidden]


def transposed(weights, hidden):
    """Forget to transpose the recurrent kernel of a plain RNN."""
    weights["layer0/recurrent"] = weights["layer0/recurrent"].T.copy()


def bias(weights, hidden):
    """Lose the bias."""
    weights["layer0/bias"] = weights["layer0/bias"] * 0


def forget(weights, hidden):
    """Drop the forget bias."""
    weights["layer0/bias"] = weights["layer0/bias"].copy()
    weights["layer0/bias"][hidden : 2 * hidden] -= 1


def verdict(slug, case, truth, plant):
    """Return what the check says of an implementation whose weights carry an error."""
    def planted(weights):
        found = {name: array.copy() for name, array in convert(weights).items()}
        plant(found, case["hidden"])
        return found

    torch_networks.to_torch = planted
    data, weights = workloads.materialise(case)
    try:
        check.same_computation(child.implementation("torch", slug)(case, data, weights, "cpu", "fp32"), truth, "fp32")
    except check.Failure as failure:
        return failure.kind
    return "ok"


def main():
    """Print one line of JSON."""
    adapters.find("torch").load(1)
    case = json.loads(sys.argv[2])
    loss, gradients, _ = reference.compute(case)
    truth = {"loss": loss, "gradients": gradients}
    plants = (nothing, gates, bias, forget) if case["cell"] == "lstm" else (nothing, transposed, bias)
    found = {slug: {plant.__name__: verdict(slug, case, truth, plant) for plant in plants} for slug in sys.argv[3:]}
    print(json.dumps(found, sort_keys=True))


main()
