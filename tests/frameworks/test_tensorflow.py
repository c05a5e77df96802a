"""Every TensorFlow implementation in every environment there is: it agrees with the reference, and errors are found.

See conftest.py for where the environments come from.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.harness import adapters
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"tf-1.8": (1, 8, 0), "tf-1.15": (1, 15, 5), "tf-2.x": (2, 21, 0)}
CASES = {f"{cell}-{loss}": drive.small(cell, loss) for cell in ("lstm", "rnn") for loss in ("mse", "ce")}

# Run by an environment's own Python with the folder of ``harness``, a case as JSON and slugs; prints JSON.
PLANT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness import adapters, check, child, reference, workloads
adapter = adapters.find("tensorflow")
adapter.load(1)
import tensorflow as tf
Engine = adapter.engines().Engine
convert, identity, predict = adapter.convert, tf.identity, getattr(Engine, "_predict", None)
case = json.loads(sys.argv[2])
hidden = case["hidden"]

def gate(found):
    kernel = found["kernel"].copy()
    found["kernel"][:, :hidden] = kernel[:, hidden : 2 * hidden]
    found["kernel"][:, hidden : 2 * hidden] = kernel[:, :hidden]

def bias(found):
    found["bias"][:] = 0

def forget(found):
    found["bias"][2 * hidden : 3 * hidden] -= case["forget_bias"]

def forward(found):
    # inference alone says something else; training is right
    if hasattr(tf, "Session"):
        tf.identity = lambda found: identity(found) * 1.01
    else:
        Engine._predict = lambda self, training: predict(self, training) * (1.0 if training else 1.01)

def nothing(found):
    pass

def verdict(slug, plant):
    def planted(case, weights, layout):
        found = convert(case, weights, layout)
        plant(found)
        return found
    adapter.convert = planted
    tf.identity, Engine._predict = identity, predict
    data, weights = workloads.materialise(case)
    program = child.implementation("tensorflow", slug)(case, data, weights, "cpu", "fp32")
    try:
        check.same_computation(program, truth, "fp32")
    except check.Failure as failure:
        return failure.kind
    return "ok"

truth = reference.compute(case)
plants = (nothing, gate, bias, forget, forward)
print(json.dumps({slug: {plant.__name__: verdict(slug, plant) for plant in plants} for slug in sys.argv[3:]}))
"""

# As above; prints how often each function was traced, or whether the graph is closed, after many calls.
TRACES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness import adapters, child, workloads
adapters.find("tensorflow").load(1)
case = json.loads(sys.argv[2])
data, weights = workloads.materialise(case)

def counts(slug):
    program = child.implementation("tensorflow", slug)(case, data, weights, "cpu", "fp32")
    for call in 5 * [program.train, program.forward, program.gradients, program.reset]:
        call()
    if hasattr(program.engine, "session"):
        return [int(program.engine.session.graph.finalized)]
    return [part.experimental_get_tracing_count() for part in (program.train, program.forward, program.engine.slopes)]

print(json.dumps({slug: counts(slug) for slug in sys.argv[3:]}))
"""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(python: Path) -> Iterator[drive.Client]:
    with drive.server(python, "tensorflow") as client:
        hello = client.hello()
        assert hello["status"] == "ok", hello
        yield client


def able(environment: str, case: dict[str, Any]) -> list[str]:
    classes = adapters.implementations("tensorflow")
    return [c.slug for c in classes if c.lacks(case, ENVIRONMENTS[environment], "cpu", "fp32") is None]


def inside(python: Path, script: str, case: dict[str, Any], slugs: list[str]) -> Any:
    """Run a script in the environment; return the JSON of its last line."""
    command = [str(python), "-c", script, str(drive.ROOT / "runner"), json.dumps(case), *slugs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_is_able_where(environment: str) -> None:
    lstm = ["basic-lstm-cell", "lstm-cell", "lstm-block-cell", "lstm-block-fused-cell"]
    if environment == "tf-2.x":
        lstm.remove("lstm-cell")
    assert able(environment, CASES["lstm-ce"]) == lstm
    assert able(environment, CASES["rnn-ce"]) == ["basic-rnn-cell"]


@pytest.mark.parametrize("phase", ["train", "forward"])
@pytest.mark.parametrize("name", CASES)
def test_all_agree_with_the_reference(client: drive.Client, environment: str, name: str, phase: str) -> None:
    for slug in able(environment, CASES[name]):
        result = client.measure(slug, CASES[name], phase)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        assert result["loss_error"] < 1e-6, slug
        assert max(result["gradient_errors"].values()) < 2e-6, slug
        assert result["forward_error"] < 1e-6, slug


def test_adam_agrees_where_gradients_are_small(client: drive.Client, environment: str) -> None:
    """With epsilon at 1e-8 this case is off by 1.3e-4, for TensorFlow's epsilon is not the reference's."""
    result = client.measure("lstm-block-fused-cell", drive.ASR_SHORT)
    assert (result["status"], result.get("reason")) == ("ok", None)
    assert result["loss_error"] < 1e-5


def test_facts_name_the_release_and_its_threads(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    assert tuple(int(part) for part in facts["version"].split(".")) >= ENVIRONMENTS[environment]
    assert (facts["intra_op_threads"], facts["inter_op_threads"]) == (2, 1)
    assert facts["optimizers"] == ("tf.keras" if environment == "tf-2.x" else "tf.train")


def test_a_gpu_is_never_taken_for_granted(client: drive.Client) -> None:
    result = client.measure("lstm-block-cell", CASES["lstm-ce"], device="cuda")
    assert (result["status"], result["class"]) == ("failed", "device")


@pytest.mark.parametrize("name", ["lstm-mse", "lstm-ce"])
def test_planted_errors_are_found(python: Path, environment: str, name: str) -> None:
    """Patch the adapter's one conversion function in the environment's interpreter; each error must be seen."""
    slugs = able(environment, CASES[name])
    expected = {"nothing": "ok", "gate": "wrong-result", "bias": "wrong-result", "forget": "wrong-result"}
    expected["forward"] = "wrong-result"
    assert inside(python, PLANT, CASES[name], slugs) == dict.fromkeys(slugs, expected)


def test_nothing_is_traced_twice(python: Path, environment: str) -> None:
    for name in ("lstm-ce", "rnn-mse"):
        for slug, traces in inside(python, TRACES, CASES[name], able(environment, CASES[name])).items():
            assert set(traces) == {1}, slug
