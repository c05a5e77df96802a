"""Every Theano implementation in every environment there is: it agrees with the reference, and errors are found.

Theano compiles each network anew: with --run-slow expect about half an hour on two cores. See conftest.py for where the
environments come from.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.frameworks import drive

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
PATIENCE = 900.0  # seconds: four bidirectional layers, with nothing in the cache

# Run by the environment's own Python with the folder of the harness and slugs; prints slug -> error -> class.
PLANT = """
import json, sys, tempfile
sys.path.insert(0, sys.argv[1])
from harness import adapters, cases, compile_cache, worker
from harness.errors import CellFailure
from harness.verify import reference, tolerance

with tempfile.TemporaryDirectory() as folder:
    compile_cache.use(folder)
    adapters.find("theano").load(1)
    case = json.loads(sys.argv[2])
    hidden = case["hidden"]
    truth = reference.compute(case)
    data, weights = cases.materialise(case)

    def gates(found):
        for part in ("kernel", "recurrent", "bias"):
            old = found["layer0/" + part].copy()
            found["layer0/" + part][..., :hidden] = old[..., hidden : 2 * hidden]
            found["layer0/" + part][..., hidden : 2 * hidden] = old[..., :hidden]

    def transposed(found):
        found["layer0/recurrent"][:, :hidden] = found["layer0/recurrent"][:, :hidden].T.copy()

    def bias(found):
        found["layer0/bias"][:] = 0

    def nothing(found):
        pass

    def verdict(program, plant):
        found = {name: array.copy() for name, array in weights.items()}
        plant(found)
        program.start = program.stored(found)
        try:
            tolerance.same_computation(program, truth, "fp32")
        except CellFailure as failure:
            return failure.kind
        return "ok"

    def verdicts(slug):
        program = worker.implementation("theano", slug)(case, data, weights, "cpu", "fp32")
        found = {plant.__name__: verdict(program, plant) for plant in (nothing, gates, transposed, bias)}
        said = program._forward()  # inference alone says something else; training is right
        program._forward = lambda: [(variable, value * 1.01) for variable, value in said]
        del program.functions["forward"]
        return dict(found, forward=verdict(program, nothing))

    print(json.dumps({slug: verdicts(slug) for slug in sys.argv[3:]}))
"""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def able(environment: str, name: str) -> list[str]:
    case = drive.SHAPES[name]
    return drive.able("theano", ENVIRONMENTS[environment], case)


def test_what_is_able_where(environment: str) -> None:
    both = ["theano-scan", "lasagne-lstm-layer"] if environment == "theano-0.8" else ["theano-scan"]
    for name in drive.SHAPES:
        wanted = both if name in LASAGNE or name.startswith("template") else ["theano-scan"]
        assert able(environment, name) == ([] if name == "ctc" else wanted), name


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SCAN])
def test_all_agree_with_the_reference(client: drive.Client, environment: str, name: str) -> None:
    for slug in able(environment, name):
        result = client.measure(slug, drive.SHAPES[name], timeout=PATIENCE)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        worst = max(result["gradient_errors"].values())
        drive.assert_close(slug, result["loss_error"], worst, result["forward_error"])


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["forward", "gradient", "compile-warm"])
def test_every_phase_is_measured(client: drive.Client, environment: str, phase: str) -> None:
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


def test_a_gpu_is_never_taken_for_granted(client: drive.Client, environment: str) -> None:
    result = client.measure("theano-scan", drive.SHAPES["lstm-step"], device="cuda")
    assert (result["status"], result["class"]) == ("failed", "device")


def test_planted_errors_are_found(python: Path, environment: str, request: pytest.FixtureRequest) -> None:
    """Change the weights that an implementation is given, and what it says in inference; each must be seen."""
    if environment != "theano-0.8" and not request.config.getoption("--run-slow"):
        pytest.skip("the code is the same for both releases: --run-slow plants in each")
    slugs = able(environment, "ce")
    command = [str(python), "-c", PLANT, str(drive.ROOT / "runner"), json.dumps(drive.SHAPES["ce"]), *slugs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    errors = dict.fromkeys(("gates", "transposed", "bias", "forward"), "wrong-result")
    assert json.loads(done.stdout.splitlines()[-1]) == {slug: {"nothing": "ok", **errors} for slug in slugs}


def test_a_missing_compiler_is_named(python: Path, environment: str, tmp_path: Path) -> None:
    with drive.server(python, "theano", {"PATH": str(tmp_path)}) as client:
        client.hello()
        result = client.measure("theano-scan", drive.SHAPES["lstm-step"])
    assert (result["status"], result["class"]) == ("failed", "crash")
    assert "g++" in result["reason"]
