"""JAX on the CPU: it agrees with the reference on every kind of case, and planted errors are detected.

See conftest.py for the environment.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runner.harness.adapters.jax.scan import Scan
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

RELEASE = (0, 10, 2)

# Run by the environment's Python. Arguments: parent of the harness, case, names of errors. Prints name -> class.
PLANT = '''
import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases
from harness.errors import CellFailure
from harness.verify import reference, tolerance
from harness.adapters import jax
from harness.adapters.jax import network
from harness.adapters.jax.scan import Scan

CELLS, LAYER, PREDICT = dict(network.CELLS), network.layer, Scan.predict


def nothing(case):
    """Plant no error."""


def gates(case):
    """Swap the first two gates."""
    from jax import numpy

    cell, hidden = CELLS[case["cell"]], case["hidden"]

    def swap(array):
        first, second, rest = numpy.split(array, (hidden, 2 * hidden), axis=1)
        return numpy.concatenate([second, first, rest], axis=1)

    network.CELLS[case["cell"]] = lambda z, state, recurrent: cell(swap(z), state, swap(recurrent))


def bias(case):
    """Lose the bias."""
    network.layer = lambda cell, x, arrays, *rest: LAYER(cell, x, arrays[:2] + [arrays[2] * 0], *rest)


def padding(case):
    """Run the backward direction as if all samples were as long as the longest."""
    network.layer = lambda cell, x, arrays, state, backward, mask: LAYER(cell, x, arrays, state, backward)


def forward(case):
    """Change the outputs of inference alone; training is right."""
    Scan.predict = lambda self, weights, data: PREDICT(self, weights, data) * 1.01


def carry(case):
    """Start every step of training from zero."""
    case["carry"] = False


def clipping(case):
    """Do not clip the norm of all gradients."""
    case["clip_norm"] = 0.0


def value(case):
    """Do not clip the values of gradients."""
    case["clip_value"] = 0.0


def each(case):
    """Do not clip the norm of each gradient."""
    case["clip_each"] = 0.0


def verdict(case, truth, plant):
    """Return what the check reports for a network with a planted error."""
    network.CELLS.update(CELLS)
    network.layer, Scan.predict = LAYER, PREDICT
    data, weights = cases.materialise(case)
    changed = dict(case)
    plant(changed)
    try:
        tolerance.same_computation(Scan(changed, data, weights, "cpu", "fp32"), truth, "fp32")
    except CellFailure as failure:
        return failure.kind
    return "ok"


def main():
    """Print one line of JSON."""
    jax.load(1)
    case = json.loads(sys.argv[2])
    truth = dict(reference.compute(case), lengths=cases.materialise(case)[0].get("lengths"))
    print(json.dumps({name: verdict(case, truth, globals()[name]) for name in sys.argv[3:]}))


main()
'''

# Arguments: parent of the harness, case, number of threads. Prints the size of XLA's thread pool after a training step.
THREADS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from harness import cases
from harness.adapters import jax
from harness.adapters.jax.scan import Scan
case = json.loads(sys.argv[2])
jax.load(int(sys.argv[3]))
program = Scan(case, *cases.materialise(case), "cpu", "fp32")
program.train()
program.synchronize()
names = [open("/proc/self/task/{}/comm".format(task)).read() for task in os.listdir("/proc/self/task")]
print(sum(name.startswith("tf_XLAEigen") for name in names))
"""

# Arguments: parent of the harness, case. Prints whether the last call's result is gone, and which arrays are ready.
WAITING = """
import json, sys, types
sys.path.insert(0, sys.argv[1])
from harness.adapters import jax
from harness.adapters.jax.model import UserModel
jax.load(1)
from jax import jit, lax, numpy

module = types.ModuleType("network")
module.__file__ = __file__ = "network.py"


class JaxModel:
    __slots__ = ("__dict__", "slot")

    def __init__(self):
        self.slow = jit(lambda x: lax.fori_loop(0, 200, lambda _, y: numpy.tanh(y @ x), x))
        self.x = numpy.ones((200, 200)) / 200
        self.tree, self.array, self.slot = {}, None, None

    def forward(self):
        self.tree = {"a": self.slow(self.x)}
        self.array = self.slow(self.x + 1)
        self.slot = self.slow(self.x + 2)
        return self.slow(self.x + 3)


module.JaxModel = JaxModel
program = UserModel(json.loads(sys.argv[2]), module, None, "cpu", "fp32")
for _ in range(2):
    result = program.forward()
    program.synchronize()
held = program.model
ready = [each.is_ready() for each in (held.tree["a"], held.array, held.slot, result)]
print(json.dumps([program.returned is None] + ready))
"""


@pytest.fixture(scope="module", params=["jax"])
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def inside(python: Path, script: str, case: dict[str, Any], *arguments: str) -> Any:
    """Run a script in the environment and return the JSON of its last line."""
    command = [str(python), "-c", script, str(drive.ROOT / "runner"), json.dumps(case), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_right(result: dict[str, Any]) -> None:
    assert (result["status"], result.get("reason")) == ("ok", None)
    worst = max(result["gradient_errors"].values())
    drive.assert_close("jax-scan", result["loss_error"], worst, result["forward_error"])


@pytest.mark.parametrize("name", drive.SHAPES)
def test_jax_scan_agrees_with_the_reference(client: drive.Client, name: str) -> None:
    case = drive.SHAPES[name]
    assert Scan.lacks(case, RELEASE, "cpu", "fp32") is None
    assert_right(client.measure("jax-scan", case))


@pytest.mark.parametrize("phase", ["forward", "gradient"])
def test_server_measures_the_other_phases(client: drive.Client, phase: str) -> None:
    assert_right(client.measure("jax-scan", drive.SHAPES["lm"], phase))


def test_second_start_loads_the_program_from_the_cache(client: drive.Client) -> None:
    client.measure("jax-scan", drive.SHAPES["gru-step-l3"], "compile-warm")
    entries = sorted(Path(client.cache).rglob("*-cache"))
    assert entries
    client.measure("jax-scan", drive.SHAPES["gru-step-l3"], "compile-warm")
    assert sorted(Path(client.cache).rglob("*-cache")) == entries


def test_facts_name_the_release_and_its_threads(client: drive.Client) -> None:
    facts = client.hello()["facts"]
    assert facts["version"] == ".".join(map(str, RELEASE))
    assert facts["jaxlib"]
    assert facts["optimizers"].startswith("optax ")
    assert facts["xla_threads"] == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_thread_pool_of_xla_has_the_requested_size(python: Path, threads: int) -> None:
    assert inside(python, THREADS, drive.SHAPES["lstm-step"], str(threads)) == threads


def test_missing_gpu_fails_with_class_device(client: drive.Client) -> None:
    result = client.measure("jax-scan", drive.SHAPES["rnn-step"], device="cuda")
    assert (result["status"], result["class"]) == ("failed", "device")
    assert "JAX has no cuda device here" in result["reason"]


@pytest.mark.parametrize(
    ("case", "errors"),
    [
        (drive.SHAPES["lstm-step"], ["gates", "bias", "forward"]),
        (drive.SHAPES["gru-step"], ["gates", "bias"]),
        (drive.SHAPES["rnn-step"], ["bias", "forward"]),
        ({**drive.SHAPES["ctc"], "layers": 2}, ["padding"]),
        (drive.SHAPES["lm"], ["carry", "clipping"]),
        # Adam hides the length of a gradient, SGD does not.
        ({**drive.SHAPES["template-clipped"], "optimizer": "sgd", "rate": 0.5}, ["value", "each"]),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, list) else str(given["cell"]),
)
def test_planted_errors_are_detected(python: Path, case: dict[str, Any], errors: list[str]) -> None:
    classes = inside(python, PLANT, case, "nothing", *errors)
    assert classes == {"nothing": "ok", **dict.fromkeys(errors, "wrong-result")}


def test_a_call_is_waited_for_and_its_result_is_not_kept(python: Path) -> None:
    case = {"seed": 0, "sizes": {}, "classes": {"jax": "JaxModel"}, "takes_weights": [], "takes_precision": []}
    assert inside(python, WAITING, {**case, "family": "model", "files": "", "entry": "network.py"}) == [True] * 5
