"""JAX on the CPU: it agrees with the reference on every kind of case, planted errors are found, threads are as asked.

See conftest.py for where the environment comes from.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runner.harness.adapters import jax
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

RELEASE = (0, 10, 2)

# Run by the environment's own Python with the folder of the harness, a case and names of errors; prints name -> class.
PLANT = '''
import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases
from harness.errors import CellFailure
from harness.verify import reference, tolerance
from harness.adapters import jax as adapter
from harness.adapters.jax import network as networks

WHOLE = dict(networks.CELLS), networks.layer, adapter.Scan._said


def nothing(case):
    """Plant no error."""


def gates(case):
    """Swap the first two gates."""
    from jax import numpy

    cell, wide = networks.CELLS[case["cell"]], case["hidden"]

    def swap(array):
        return numpy.concatenate([array[:, wide : 2 * wide], array[:, :wide], array[:, 2 * wide :]], axis=1)

    networks.CELLS[case["cell"]] = lambda z, state, recurrent: cell(swap(z), state, swap(recurrent))


def bias(case):
    """Lose the bias."""
    networks.layer = lambda cell, x, own, *rest: WHOLE[1](cell, x, own[:2] + [own[2] * 0], *rest)


def padding(case):
    """Walk back over a batch as if all samples were as long as the longest."""
    networks.layer = lambda cell, x, own, state, back, inside: WHOLE[1](cell, x, own, state, back)


def forward(case):
    """Let inference alone say something else; training is right."""
    adapter.Scan._said = lambda self, weights, data: WHOLE[2](self, weights, data) * 1.01


def carry(case):
    """Start every step of training from zero."""
    case["carry"] = False


def clipping(case):
    """Do not cut the norm of all gradients."""
    case["clip_norm"] = 0.0


def value(case):
    """Do not cut the values of gradients."""
    case["clip_value"] = 0.0


def each(case):
    """Do not cut the norm of each gradient."""
    case["clip_each"] = 0.0


def verdict(case, truth, plant):
    """Return what the check says of a network that carries an error."""
    networks.CELLS.update(WHOLE[0])
    networks.layer, adapter.Scan._said = WHOLE[1:]
    data, weights = cases.materialise(case)
    own = dict(case)
    plant(own)
    try:
        tolerance.same_computation(adapter.Scan(own, data, weights, "cpu", "fp32"), truth, "fp32")
    except CellFailure as failure:
        return failure.kind
    return "ok"


def main():
    """Print one line of JSON."""
    adapter.load(1)
    case = json.loads(sys.argv[2])
    truth = dict(reference.compute(case), lengths=cases.materialise(case)[0].get("lengths"))
    print(json.dumps({name: verdict(case, truth, globals()[name]) for name in sys.argv[3:]}))


main()
'''

# As above, with a number of threads; prints how many XLA has for its operations after a step of training.
THREADS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from harness import cases
from harness.adapters import jax as adapter
case = json.loads(sys.argv[2])
adapter.load(int(sys.argv[3]))
program = adapter.Scan(case, *cases.materialise(case), "cpu", "fp32")
program.train()
program.synchronize()
names = [open("/proc/self/task/{}/comm".format(task)).read() for task in os.listdir("/proc/self/task")]
print(sum(name.startswith("tf_XLAEigen") for name in names))
"""


@pytest.fixture(scope="module", params=["jax"])
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def inside(python: Path, script: str, case: dict[str, Any], *arguments: str) -> Any:
    """Run a script in the environment; return the JSON of its last line."""
    command = [str(python), "-c", script, str(drive.ROOT / "runner"), json.dumps(case), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_right(result: dict[str, Any]) -> None:
    assert (result["status"], result.get("reason")) == ("ok", None)
    worst = max(result["gradient_errors"].values())
    drive.assert_close("jax-scan", result["loss_error"], worst, result["forward_error"])


@pytest.mark.parametrize("name", drive.SHAPES)
def test_it_agrees_with_the_reference(client: drive.Client, name: str) -> None:
    case = drive.SHAPES[name]
    assert jax.Scan.lacks(case, RELEASE, "cpu", "fp32") is None
    assert_right(client.measure("jax-scan", case))


@pytest.mark.parametrize("phase", ["forward", "gradient"])
def test_the_other_phases_are_measured_too(client: drive.Client, phase: str) -> None:
    assert_right(client.measure("jax-scan", drive.SHAPES["lm"], phase))


def test_a_compiled_program_is_found_again(client: drive.Client) -> None:
    client.measure("jax-scan", drive.SHAPES["gru-step-l3"], "compile-warm")
    kept = sorted(Path(client.cache).rglob("*-cache"))
    assert kept
    client.measure("jax-scan", drive.SHAPES["gru-step-l3"], "compile-warm")
    assert sorted(Path(client.cache).rglob("*-cache")) == kept


def test_facts_name_the_release_and_its_threads(client: drive.Client) -> None:
    facts = client.hello()["facts"]
    assert facts["version"] == ".".join(map(str, RELEASE))
    assert facts["jaxlib"]
    assert facts["optimizers"].startswith("optax ")
    assert facts["xla_threads"] == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_xla_has_as_many_threads_as_asked(python: Path, threads: int) -> None:
    assert inside(python, THREADS, drive.SHAPES["lstm-step"], str(threads)) == threads


def test_a_gpu_is_never_taken_for_granted(client: drive.Client) -> None:
    result = client.measure("jax-scan", drive.SHAPES["rnn-step"], device="cuda")
    assert result["status"] == "failed"
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
def test_planted_errors_are_found(python: Path, case: dict[str, Any], errors: list[str]) -> None:
    found = inside(python, PLANT, case, "nothing", *errors)
    assert found == {"nothing": "ok", **dict.fromkeys(errors, "wrong-result")}
