"""Every PyTorch implementation in every environment agrees with the reference, and planted errors are detected.

See conftest.py for the environments.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters.kernel import Kernel
from runner.harness.adapters.torch import graphs
from runner.harness.adapters.user_model import UserModel
from runner.harness.cases.recurrent import is_pure
from tests.frameworks import drive
from tests.frameworks.conftest import interpreter
from tests.support import needs

PATIENCE = 1800.0  # seconds: a processor without bf16 takes minutes for its planted errors

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"torch-1.0": (1, 0, 0), "torch-1.12": (1, 12, 1), "torch-2.x": (2, 13, 0)}
COMPILED = ("rnn-step", "gru-step-l3", "ctc")  # compiling takes seconds for each shape
SHAPES = {**drive.SHAPES, **drive.CLIPPED}
CLIPPED = ("lm", *drive.CLIPPED)  # the check detects missing clipping here
REPRESENTATIVES = ("lstm-step", "rnn-step", "gru-step-l3", "ctc", "lm", "template-both-ways", "clip-value")
"""One case for each code path, where --need slow does not ask for all: cells, layers, ways, lengths, clipping."""
IN_16_BITS = (("torch-2.x", "bf16"), ("torch-2.x", "fp16"), ("torch-1.12", "bf16"))
"""Pairs of an environment and its 16 bits, whose planted errors --need slow asks for."""
AVX512 = "avx512bw" in Path("/proc/cpuinfo").read_text()
NEED_AVX512 = {("torch-2.x", "bf16", slug) for slug in ("nn-lstm", "nn-lstm-padded")}  # in mixed precision
SHAPES_IN_16_BITS = {**SHAPES, "lm-carried": {**SHAPES["lm"], "steps": 2, "batch": 2, "seed": 1}}
GRAPHED = [name for name, case in SHAPES.items() if case["cell"] == "lstm" and not case["ragged"]]
SERVED = (("lstm-step", "forward"), ("lstm-step", "gradient"), ("lstm-step", "train"), ("ctc", "train"))


@pytest.fixture(scope="module", params=["torch-1.0", "torch-2.x", *needs.slow("torch-1.12")])
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def able(environment: str, case: Mapping[str, Any]) -> list[str]:
    return drive.able("torch", ENVIRONMENTS[environment], case)


def plants(name: str) -> list[str]:
    """Return the planted errors that the check must detect in a case."""
    case = SHAPES[name]
    names = ["lose_bias", "forward", "transpose" if case["cell"] in ("rnn", "relu") else "swap_gates"]
    names += ["lose_forget_bias"] if case["cell"] == "lstm" and case["forget_bias"] else []
    names += ["swap_ways"] if case["bidirectional"] else []
    names += ["shift_words"] if case["vocabulary"] else []
    names += ["even"] if case["ragged"] else []
    names += ["forgetful"] if case["carry"] else []
    return names + (["unclipped"] if name in CLIPPED else [])


def plants_in_16_bits(name: str) -> list[str]:
    """Return the planted errors that the check must detect in fp16 and bf16.

    Where a sample has many steps, the states before the first hardly change the loss: less than 16 bits show.
    """
    if name == "lm-carried":
        return ["forgetful"]
    larger = {"forward": "forward_by_a_twentieth"}
    return [larger.get(plant, plant) for plant in plants(name) if plant != "forgetful"]


def able_in_16_bits(environment: str, case: dict[str, Any], precision: str) -> list[str]:
    """Return the slugs that a release has for a case in 16 bits, except those that this processor has no kernel for."""
    slugs = drive.able("torch", ENVIRONMENTS[environment], case, precision)
    if AVX512 or is_pure(case):
        return slugs
    return [slug for slug in slugs if (environment, precision, slug) not in NEED_AVX512]


def ask(python: Path, cache: Path, questions: dict[str, Any]) -> dict[str, Any]:
    """Run ``plant_torch`` with an environment's Python; return its answers."""
    script = Path(__file__).with_name("plant_torch.py")
    command = [str(python), str(script), str(drive.ROOT / "runner"), json.dumps(questions)]
    env = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=env)
    assert process.returncode == 0, process.stderr[-3000:]
    answers: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answers


@pytest.fixture(scope="module")
def answers(
    python: Path, environment: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """The verdicts of the check for each case, implementation and planted error, from one process: imports are slow."""
    questions = {}
    for name in SHAPES if needs.given(request.config, "slow") else REPRESENTATIVES:
        case = SHAPES[name]
        slugs = [slug for slug in able(environment, case) if slug != "compiled-cell" or name in COMPILED]
        questions[name] = {"case": case, "slugs": slugs, "plants": ["nothing", *plants(name)]}
    return ask(python, tmp_path_factory.mktemp("inductor"), questions)


def test_all_agree_with_the_reference(answers: dict[str, Any]) -> None:
    for name, slugs in answers.items():
        for slug, verdicts in slugs.items():
            correct = verdicts["nothing"]
            assert (name, slug, correct["class"], correct["reason"]) == (name, slug, "ok", None)
            drive.assert_close((name, slug), *correct["errors"])


def test_planted_errors_are_detected(answers: dict[str, Any]) -> None:
    assert set(answers) >= set(REPRESENTATIVES)
    for name, slugs in answers.items():
        assert slugs, name
        for slug, verdicts in slugs.items():
            classes = {plant: verdict["class"] for plant, verdict in verdicts.items()}
            expected = {"nothing": "ok", **dict.fromkeys(plants(name), "wrong-result")}
            assert (name, slug, classes) == (name, slug, expected)


def test_the_representatives_have_every_planted_error() -> None:
    assert {plant for name in REPRESENTATIVES for plant in plants(name)} == {
        plant for name in SHAPES for plant in plants(name)
    }


def test_every_implementation_is_checked(answers: dict[str, Any], environment: str) -> None:
    checked = {slug for verdicts_by_slug in answers.values() for slug in verdicts_by_slug}
    release = ENVIRONMENTS[environment]
    classes = adapters.implementations("torch")
    networks = [each for each in classes if not issubclass(each, (Kernel, UserModel)) and "cpu" in each.devices]
    assert checked == {chosen.slug for chosen in networks if release >= chosen.since}


@pytest.fixture(
    scope="module", params=[pytest.param(pair, marks=pytest.mark.slow) for pair in IN_16_BITS], ids="-".join
)
def sixteen_bits(request: pytest.FixtureRequest) -> tuple[str, str]:
    environment, precision = request.param
    return str(environment), str(precision)


@pytest.fixture(scope="module")
def answers_in_16_bits(sixteen_bits: tuple[str, str], request: pytest.FixtureRequest) -> dict[str, Any]:
    """As ``answers``, for what computes in 16 bits, and for CUDA graphs with a stand-in that repeats the call."""
    environment, precision = sixteen_bits
    questions = {}
    for name, case in SHAPES_IN_16_BITS.items():
        slugs = [
            slug
            for slug in able_in_16_bits(environment, case, precision)
            if slug != "compiled-cell" or name in COMPILED
        ]
        graphs = ["lstm-cell-basic-graph"] if name in GRAPHED else []
        questions[name] = {
            "case": case,
            "slugs": slugs + graphs,
            "plants": ["nothing", *plants_in_16_bits(name)],
            "precision": precision,
        }
    folder = request.getfixturevalue("tmp_path_factory").mktemp("inductor")
    return ask(interpreter(environment, request), folder, questions)


def test_planted_errors_are_detected_in_16_bits(answers_in_16_bits: dict[str, Any]) -> None:
    assert set(answers_in_16_bits) == set(SHAPES_IN_16_BITS)
    for name, slugs in answers_in_16_bits.items():
        assert slugs, name
        for slug, verdicts in slugs.items():
            missed = {plant for plant, verdict in verdicts.items() if verdict["class"] == "ok"}
            assert (name, slug, missed, verdicts["nothing"]["reason"]) == (name, slug, {"nothing"}, None)
            assert {verdict["class"] for verdict in verdicts.values()} == {"ok", "wrong-result"}


def test_graphs_compute_what_is_computed_without_them(python: Path, environment: str, tmp_path: Path) -> None:
    """A stand-in for CUDA graphs repeats the call into the same memory, as a replay does."""
    if ENVIRONMENTS[environment] < graphs.Graphed.since:
        pytest.skip(f"{environment} has no CUDA graphs with Adam")
    slugs = ["nn-lstm-graph", "lstm-cell-basic-graph"]
    questions = {name: {"case": SHAPES[name], "slugs": slugs, "plants": ["nothing", *plants(name)]} for name in GRAPHED}
    for name, verdicts_by_slug in ask(python, tmp_path, questions).items():
        for slug, verdicts in verdicts_by_slug.items():
            classes = {plant: verdict["class"] for plant, verdict in verdicts.items()}
            expected = {"nothing": "ok", **dict.fromkeys(plants(name), "wrong-result")}
            assert (name, slug, classes) == (name, slug, expected)
            drive.assert_close(slug, *verdicts["nothing"]["errors"])


def test_record_says_how_a_network_in_16_bits_computes(client: drive.Client, environment: str) -> None:
    if (environment, "bf16") not in IN_16_BITS:
        pytest.skip(f"{environment} has no 16 bits on a CPU")
    mixed = client.measure("lstm-cell-basic", SHAPES["lstm-step"], precision="bf16")
    assert (mixed["status"], mixed["arithmetic"]) == ("ok", "autocast to bfloat16, weights in float32")
    pure = client.measure("nn-rnn", SHAPES["relu-sequence"], "gradient", precision="bf16")
    assert (pure["status"], pure["arithmetic"]) == ("ok", "weights, data and states in bfloat16")
    assert "arithmetic" not in client.measure("lstm-cell-basic", SHAPES["lstm-step"])


def test_a_network_without_a_kernel_for_the_processor_has_its_class(request: pytest.FixtureRequest) -> None:
    python = interpreter("torch-2.x", request)
    with drive.server(python, "torch", env={"ONEDNN_MAX_CPU_ISA": "AVX2"}) as client:
        client.hello()
        refused = client.measure("nn-lstm", SHAPES["lstm-step"], precision="bf16")
        assert (refused["status"], refused["class"]) == ("failed", "arch")
        assert "could not create a primitive descriptor for the LSTM" in refused["reason"]
        assert client.measure("nn-lstm", SHAPES["lstm-step"])["status"] == "ok"


def test_a_nonzero_second_bias_is_detected(python: Path, environment: str, tmp_path: Path) -> None:
    question = {
        "case": SHAPES["lstm-step-l3"],
        "plants": ["second_bias"],
        "slugs": ["lstm-cell-fused", "nn-lstm"],
    }
    for slug, verdicts in ask(python, tmp_path, {"biases": question})["biases"].items():
        assert (slug, verdicts["second_bias"]["class"]) == (slug, "wrong-result")


@pytest.mark.parametrize(("name", "phase"), SERVED)
def test_a_server_measures_every_implementation(client: drive.Client, environment: str, name: str, phase: str) -> None:
    for slug in able(environment, SHAPES[name]):
        if slug != "compiled-cell" or (name, phase) == ("lstm-step", "train"):
            result = client.measure(slug, SHAPES[name], phase)
            assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)


def test_facts_name_the_release_and_its_defaults(python: Path, environment: str) -> None:
    with drive.server(python, "torch") as client:
        facts = client.hello(threads=2)["facts"]
    release = tuple(int(part) for part in facts["version"].split("+")[0].split("."))
    assert release[:1] == ENVIRONMENTS[environment][:1]
    assert facts["zero_grad"] == "none"
    assert (facts["adam_epsilon"] == "corrected at each step") == (environment == "torch-1.0")
    assert facts["threads"] == (1 if environment == "torch-1.0" else 2)  # 1.0.0 always returns 1


def test_a_missing_compiler_is_named(python: Path, environment: str, tmp_path: Path) -> None:
    if "compiled-cell" not in able(environment, SHAPES["ce"]):
        pytest.skip(f"{environment} has no torch.compile")
    with drive.server(python, "torch", {"PATH": str(tmp_path)}) as client:
        client.hello()
        result = client.measure("compiled-cell", SHAPES["ce"])
    assert result["status"] == "failed"
    assert result["class"] == "crash"
    assert "g++" in result["reason"]
