"""Every Theano implementation in every environment: it agrees with the reference, and planted errors are detected.

Theano compiles each network anew: with --need slow expect about half an hour on two cores. See conftest.py for the
environments.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.frameworks import drive
from tests.support import needs

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"theano-0.8": (0, 8, 2), "theano-1.0": (1, 0, 5)}
LASAGNE = (
    "lstm-step",
    "lstm-step-l3",
    "lstm-sequence",
    "ce",
    "ce-4-both-ways",
    "template-clipped",
    "template-both-ways",
)
SCAN = (*LASAGNE, "rnn-step", "gru-step", "rnn-step-l3", "gru-step-l3", "lm")
QUICK = ("ce",)
PLANTED = ("theano-0.8", "lasagne-lstm-layer")
"""Where errors are planted without --need slow: the one class that converts weights, in addition to the shared code."""
PATIENCE = 900.0  # seconds: four bidirectional layers, with nothing in the cache

# Run by the environment's Python. Arguments: parent of the harness, case, compiler cache, slugs.
# Prints slug -> error -> class.
PLANT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from harness import adapters, cases, compile_cache, worker
from harness.errors import CellFailure
from harness.verify import reference, tolerance

compile_cache.use(sys.argv[3])
os.environ["THEANO_FLAGS"] += ",optimizer=fast_compile,linker=py"  # nothing is timed: no C is compiled
adapters.find("theano").load(2)
case = json.loads(sys.argv[2])
hidden = case["hidden"]
truth = reference.compute(case)
data, weights = cases.materialise(case)

def nothing(arrays):
    pass

def gates(arrays):
    for part in ("kernel", "recurrent", "bias"):
        array = arrays["layer0/" + part]
        first = array[..., :hidden].copy()
        array[..., :hidden] = array[..., hidden : 2 * hidden]
        array[..., hidden : 2 * hidden] = first

def transposed(arrays):
    arrays["layer0/recurrent"][:, :hidden] = arrays["layer0/recurrent"][:, :hidden].T.copy()

def bias(arrays):
    arrays["layer0/bias"][:] = 0

def verdict(program, plant):
    arrays = {name: array.copy() for name, array in weights.items()}
    plant(arrays)
    program.initial_weights = program.stored(arrays)
    try:
        tolerance.same_computation(program, truth, "fp32")
    except CellFailure as failure:
        return failure.kind
    return "ok"

def verdicts(slug):
    program = worker.implementation("theano", slug)(case, data, weights, "cpu", "fp32")
    classes = {plant.__name__: verdict(program, plant) for plant in (nothing, gates, transposed, bias)}
    updates = program.updates  # the outputs of inference alone change; training is right
    program.updates = lambda phase: [(variable, value * 1.01) for variable, value in updates(phase)]
    del program.functions["forward"]
    return dict(classes, forward=verdict(program, nothing))

print(json.dumps({slug: verdicts(slug) for slug in sys.argv[4:]}))
"""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def able(environment: str, name: str) -> list[str]:
    case = drive.SHAPES[name]
    return drive.able("theano", ENVIRONMENTS[environment], case)


def test_each_release_has_its_implementations(environment: str) -> None:
    both = ["theano-scan", "lasagne-lstm-layer"] if environment == "theano-0.8" else ["theano-scan"]
    for name in drive.SHAPES:
        expected = both if name in LASAGNE or name.startswith("template") else ["theano-scan"]
        assert able(environment, name) == ([] if name == "ctc" else expected), name


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SCAN])
def test_implementations_agree_with_the_reference(client: drive.Client, environment: str, name: str) -> None:
    for slug in able(environment, name):
        result = client.measure(slug, drive.SHAPES[name], timeout=PATIENCE)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        worst = max(result["gradient_errors"].values())
        drive.assert_close(slug, result["loss_error"], worst, result["forward_error"])


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["forward", "gradient", "compile-warm"])
def test_server_measures_each_phase(client: drive.Client, environment: str, phase: str) -> None:
    for slug in able(environment, "lstm-step"):
        result = client.measure(slug, drive.SHAPES["lstm-step"], phase, timeout=PATIENCE)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)


def test_facts_name_the_release_its_blas_and_its_compiler(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    assert tuple(int(part) for part in facts["version"].split(".")) == ENVIRONMENTS[environment]
    assert facts["blas"].startswith("openblas")
    assert int(facts["compiler"].split(".")[0]) > 0
    assert facts["openmp"] is True
    assert facts["lasagne"] == ("0.1" if environment == "theano-0.8" else None)


def test_missing_gpu_fails_with_class_device(client: drive.Client, environment: str) -> None:
    result = client.measure("theano-scan", drive.SHAPES["lstm-step"], device="cuda")
    assert (result["status"], result["class"]) == ("failed", "device")


def test_planted_errors_are_detected(
    python: Path, client: drive.Client, environment: str, request: pytest.FixtureRequest
) -> None:
    """Change the weights of an implementation, and its outputs in inference; the check must detect each.

    The cache is that of the server, which has compiled the same case in a test above.
    """
    slugs = able(environment, "ce")
    if not needs.given(request.config, "slow"):
        slugs = [slug for slug in slugs if (environment, slug) == PLANTED]
        if not slugs:
            pytest.skip(
                "PLANTED runs all code that plants errors: --need slow plants in each implementation and release"
            )
    arguments = [str(drive.ROOT / "runner"), json.dumps(drive.SHAPES["ce"]), client.cache, *slugs]
    command = [str(python), "-c", PLANT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    errors = dict.fromkeys(("gates", "transposed", "bias", "forward"), "wrong-result")
    assert json.loads(done.stdout.splitlines()[-1]) == {slug: {"nothing": "ok", **errors} for slug in slugs}


def test_missing_compiler_is_named(python: Path, environment: str, tmp_path: Path) -> None:
    with drive.server(python, "theano", {"PATH": str(tmp_path)}) as client:
        client.hello()
        result = client.measure("theano-scan", drive.SHAPES["lstm-step"])
    assert (result["status"], result["class"]) == ("failed", "crash")
    assert "g++" in result["reason"]
