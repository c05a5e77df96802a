"""Every Keras implementation in every environment: it agrees with the reference, and planted errors are detected.

Theano compiles each network anew, so it runs fewer shapes. See conftest.py for the environments.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters.user_model import UserModel
from tests.frameworks import drive
from tests.support import needs

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"keras-2.1-tf": (2, 1, 6), "keras-2.1-theano": (2, 1, 6), "keras-3": (3, 15, 1)}
TWO_LAYERS = drive.shrunk("asr-lstm/4x320-ctc-long", layers=2)
SHAPES = {**drive.SHAPES, "ctc-2": TWO_LAYERS, **drive.CLIPPED}
CLIPPED = ("lm", *drive.CLIPPED)
PLANTED = ("lstm-step", "rnn-step", "gru-step", "template-both-ways", "ctc-2", *CLIPPED)
REPRESENTATIVES = ("lstm-step", "rnn-step", "gru-step", "ctc-2", "lm")
"""One case for each code path: gates, bias, forget bias, transposition, ways, ragged lengths, states, clipping."""
ON_THEANO = ("lstm-step", "rnn-step", "gru-step", "ce", "lm", "template-both-ways")
PATIENCE = 3000.0  # seconds, where Theano has nothing in its cache


@pytest.fixture(scope="module", params=["keras-3", *needs.slow("keras-2.1-tf", "keras-2.1-theano")])
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def able(environment: str, case: Mapping[str, Any]) -> list[str]:
    return drive.able("keras", ENVIRONMENTS[environment], case)


def plants(environment: str, name: str) -> list[str]:
    """Return the planted errors that the check must detect in a case."""
    if name not in PLANTED:
        return []
    case = SHAPES[name]
    names = ["lose_bias", "transpose" if case["cell"] in ("rnn", "relu") else "swap_gates"]
    names += ["lose_forget_bias"] if case["cell"] == "lstm" and case["forget_bias"] else []
    names += ["swap_ways"] if case["bidirectional"] else []
    if environment == "keras-2.1-theano":
        return names  # the others need a new program, which takes Theano minutes
    names += ["even"] if case["ragged"] else []
    names += ["forgetful"] if case["carry"] else []
    return names + (["unclipped"] if name in CLIPPED else [])


def ask(python: Path, questions: Mapping[str, Any]) -> dict[str, Any]:
    """Have an environment's Python answer the questions of ``plant_keras``."""
    script = Path(__file__).with_name("plant_keras.py")
    command = [str(python), str(script), str(drive.ROOT / "runner"), json.dumps(questions)]
    env = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "HOME": os.devnull, "LANG": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def names(environment: str, *, slow: bool) -> list[str]:
    if environment != "keras-2.1-theano":
        return list(SHAPES if slow else REPRESENTATIVES)
    return list(ON_THEANO if slow else ON_THEANO[:1])


@pytest.fixture(scope="module")
def answers(python: Path, environment: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the check reports for each case, implementation and planted error, in one process: importing is slow."""
    questions = {}
    for name in names(environment, slow=needs.given(request.config, "slow")):
        planted = ["nothing", *plants(environment, name)]
        questions[name] = {"case": SHAPES[name], "slugs": able(environment, SHAPES[name]), "plants": planted}
    return ask(python, questions)


def test_implementations_agree_with_the_reference(answers: dict[str, Any]) -> None:
    for name, slugs in answers.items():
        for slug, verdicts in slugs.items():
            right = verdicts["nothing"]
            assert (name, slug, right["class"], right["reason"]) == (name, slug, "ok", None)
            drive.assert_close((name, slug), *right["errors"])


def test_planted_errors_are_detected(answers: dict[str, Any], environment: str) -> None:
    for name, slugs in answers.items():
        for slug, verdicts in slugs.items():
            classes = {plant: verdict["class"] for plant, verdict in verdicts.items()}
            expected = {"nothing": "ok", **dict.fromkeys(plants(environment, name), "wrong-result")}
            assert (name, slug, classes) == (name, slug, expected)


def test_every_implementation_is_checked(answers: dict[str, Any], environment: str) -> None:
    if environment == "keras-2.1-theano" and set(answers) != set(ON_THEANO):
        pytest.skip("Theano runs one shape; --need slow runs all")
    slugs = {slug for by_slug in answers.values() for slug in by_slug}
    classes = [each for each in adapters.implementations("keras") if not issubclass(each, UserModel)]
    assert slugs == {each.slug for each in classes if "cpu" in each.devices}


def test_second_bias_of_a_gru_and_epsilon_of_adam_are_detected(python: Path, environment: str) -> None:
    if environment == "keras-2.1-theano":
        pytest.skip("the code is the same on both backends, and Theano takes minutes to compile it")
    step = {**SHAPES["gru-step"], "rate": 1.0}  # two trained biases move twice as far
    questions = {
        "bias": {"case": step, "slugs": ["keras-gru"], "plants": ["nothing", "second_bias"]},
        "epsilon": {"case": drive.ASR_SHORT, "slugs": ["keras-lstm"], "plants": ["nothing", "epsilon"]},
    }
    for by_slug in ask(python, questions).values():
        (verdicts,) = by_slug.values()
        assert [verdict["class"] for verdict in verdicts.values()] == ["ok", "wrong-result"]


@pytest.mark.parametrize("phase", ["forward", "gradient", "train"])
def test_server_measures_each_phase(client: drive.Client, phase: str) -> None:
    result = client.measure("keras-lstm", SHAPES["lstm-step"], phase)
    assert (result["status"], result.get("reason")) == ("ok", None)


def test_facts_name_the_release_the_backend_and_changed_defaults(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    assert tuple(int(part) for part in facts["version"].split(".")) >= ENVIRONMENTS[environment]
    assert facts["backend"] == ("theano" if environment == "keras-2.1-theano" else "tensorflow")
    assert facts["recurrent_activation"] == "sigmoid"
    if environment == "keras-2.1-theano":
        assert "openblas" in facts["blas"]
    else:
        assert (facts["intra_op_threads"], facts["inter_op_threads"]) == (2, 1)
