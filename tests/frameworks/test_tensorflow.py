"""Every TensorFlow implementation in every environment: it agrees with the reference, and planted errors are detected.

See conftest.py for the environments.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks import drive
from tests.frameworks.conftest import interpreter
from tests.support import needs

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"tf-1.8": (1, 8, 0), "tf-1.15": (1, 15, 5), "tf-2.x": (2, 21, 0)}
ENDS = ("tf-1.8", "tf-2.x")
"""Where errors are planted without --need slow."""
PHASES = ("train", "gradient", "forward")
MAX_LAYERS = 2  # a loop takes a graph a third of a second, and a case is built for each implementation

# A clipped step of SGD shows in the losses; Adam's hardly change with the scale of a gradient.
CLIPPED = drive.shrunk("lm-lstm/template-2x64", layers=1, clip_value=0.02, clip_each=0.03, optimizer="sgd", rate=0.5)
WORDS = drive.shrunk("lm-lstm/lm-small", layers=1, clip_norm=0.02)
SPEECH = drive.shrunk("asr-lstm/4x320-ctc-long", layers=1)
MORE_SHAPES = {
    "gru-ctc": {**SPEECH, "cell": "gru"},
    "gru-lm": {**WORDS, "cell": "gru"},
    "rnn-lm": {**WORDS, "cell": "rnn"},
    "sgd-clipped": {**CLIPPED, "bidirectional": True},
    "gru-sgd-clipped": {**CLIPPED, "cell": "gru"},
}
SHAPES = {**drive.SHAPES, **MORE_SHAPES}
CASES = {name: {**case, "layers": min(case["layers"], MAX_LAYERS)} for name, case in SHAPES.items()}
PLANTS: dict[str, tuple[dict[str, Any], list[str], tuple[str, ...]]] = {
    "lstm": (CASES["lstm-step"], ["gate", "bias", "forget", "forward"], ()),
    "rnn": (CASES["rnn-step"], ["bias", "forward"], ()),
    "gru": (CASES["gru-step"], ["gate", "bias", "forward"], ()),
    "ctc": (SPEECH, ["lengths", "ways"], ("basic-lstm-cell", "lstm-block-fused-cell")),
    "lm": (
        {**WORDS, "vocabulary": 3, "classes": 3, "rate": 20.0},
        ["states", "clip", "slices"],
        ("lstm-block-fused-cell",),
    ),
    "clipped": (CLIPPED, ["clip", "rows"], ("lstm-block-fused-cell",)),
}

# Run by an environment's Python with the parent folder of ``harness``, a case as JSON and slugs; prints as JSON how
# often each function was traced, or whether the graph is finalized, after many calls.
TRACES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness import adapters, cases, worker
adapters.find("tensorflow").load(1)
case = json.loads(sys.argv[2])
data, weights = cases.materialise(case)

def counts(slug):
    program = worker.implementation("tensorflow", slug)(case, data, weights, "cpu", "fp32")
    for call in 5 * [program.train, program.forward, program.backward, program.gradients, program.reset]:
        call()
    if hasattr(program.engine, "session"):
        return [int(program.engine.session.graph.finalized)]
    functions = (program.engine.train, program.engine.forward, program.engine.backward)
    return [function.experimental_get_tracing_count() for function in functions]

print(json.dumps({slug: counts(slug) for slug in sys.argv[3:]}))
"""

# As above; prints the losses of three steps in one program, and in another with every other call between the steps.
APART = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness import adapters, cases, worker
adapters.find("tensorflow").load(1)
case = json.loads(sys.argv[2])
data, weights = cases.materialise(case)

def losses(program, between):
    values = []
    for _ in range(3):
        program.train()
        values.append(program.loss())
        for call in between:
            call()
    return values

def both(slug):
    first, second = [worker.implementation("tensorflow", slug)(case, data, weights, "cpu", "fp32") for _ in range(2)]
    first.train()
    first.reset()
    others = [second.forward, second.outputs, second.backward, second.gradients, first.forward, first.backward]
    return [losses(second, others), losses(first, [])]

print(json.dumps({slug: both(slug) for slug in sys.argv[3:]}))
"""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def able(environment: str, case: dict[str, Any]) -> list[str]:
    return drive.able("tensorflow", ENVIRONMENTS[environment], case)


def inside(python: Path, *words: str) -> Any:
    """Run Python in the environment; return the JSON of its last line."""
    done = subprocess.run([str(python), *words], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_slugs_that_can_run_a_case_are_those_of_the_release(environment: str, name: str) -> None:
    cell, slugs = CASES[name]["cell"], able(environment, CASES[name])
    lstms = {"basic-lstm-cell", "lstm-block-cell", "lstm-block-fused-cell"}
    assert {"rnn": {"basic-rnn-cell"}, "relu": {"basic-rnn-cell"}, "gru": {"gru-cell"}}.get(cell, lstms) <= set(slugs)
    assert ("lstm-cell" in slugs) == (cell == "lstm" and environment != "tf-2.x")


@pytest.mark.parametrize("name", CASES)
def test_implementations_agree_with_the_reference(client: drive.Client, environment: str, name: str) -> None:
    """Each case is timed in one phase; every phase compares outputs, gradients and three steps with the reference."""
    phase = PHASES[list(CASES).index(name) % len(PHASES)]
    for slug in able(environment, CASES[name]):
        result = client.measure(slug, CASES[name], phase, seconds=0.01)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        worst = max(result["gradient_errors"].values())
        drive.assert_close(slug, result["loss_error"], worst, result["forward_error"])


def test_adam_with_small_gradients_agrees_with_the_reference(client: drive.Client, environment: str) -> None:
    """With an epsilon of 1e-8 the loss of this case is off by 1.3e-4: TensorFlow adds epsilon elsewhere."""
    result = client.measure("lstm-block-fused-cell", drive.ASR_SHORT)
    assert (result["status"], result.get("reason")) == ("ok", None)
    assert result["loss_error"] < 1e-5


def test_facts_name_the_release_and_its_threads(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    assert tuple(int(part) for part in facts["version"].split(".")) >= ENVIRONMENTS[environment]
    assert (facts["intra_op_threads"], facts["inter_op_threads"]) == (2, 1)
    assert facts["optimizers"] == ("tf.keras" if environment == "tf-2.x" else "tf.train")


def test_cuda_without_gpu_fails_with_class_device(client: drive.Client) -> None:
    result = client.measure("lstm-block-cell", CASES["ce"], device="cuda")
    assert (result["status"], result["class"]) == ("failed", "device")


@pytest.mark.parametrize("name", PLANTS)
def test_planted_errors_are_detected(environment: str, name: str, request: pytest.FixtureRequest) -> None:
    if environment not in ENDS and not needs.given(request.config, "slow"):
        pytest.skip(f"the ends run all code that plants errors: --need slow plants them in {environment}, too")
    case, plants, some = PLANTS[name]
    slugs = list(some) or able(environment, case)
    script = str(drive.ROOT / "tests" / "frameworks" / "plant_tensorflow.py")
    words = (str(drive.ROOT / "runner"), json.dumps(case), ",".join(["nothing", *plants]), ",".join(slugs))
    expected = {"nothing": "ok", **dict.fromkeys(plants, "wrong-result")}
    assert inside(interpreter(environment, request), script, *words) == dict.fromkeys(slugs, expected)


def test_functions_are_traced_once(python: Path, environment: str) -> None:
    for name in ("ce", "rnn-step"):
        words = (str(drive.ROOT / "runner"), json.dumps(CASES[name]), *able(environment, CASES[name]))
        for slug, traces in inside(python, "-c", TRACES, *words).items():
            assert set(traces) == {1}, slug


def test_weights_and_states_change_in_training_alone_and_in_one_program(python: Path, environment: str) -> None:
    words = (str(drive.ROOT / "runner"), json.dumps(WORDS), "basic-lstm-cell", "lstm-block-fused-cell")
    for slug, (busy, alone) in inside(python, "-c", APART, *words).items():
        assert busy == alone, slug
        assert len(set(alone)) == len(alone), slug
