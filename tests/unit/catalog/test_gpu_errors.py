"""Well-known failures of GPUs are told from others, and become a sentence and a fix."""

import pytest

from runner.catalog.gpu_errors import gpu_errors, known_gpu_error
from runner.core.model import FAILURE_CLASSES, Cell, Outcome, Provisioned
from runner.measure.record import collect

CELL = Cell(environment="torch-0.4", implementation="nn-lstm", workload="rnn-step", case="tiny", phase="train")
READY = Provisioned(environment="torch-0.4", framework="torch", handle="", digest="d", seconds=0.0, cached=True)
WORDS = "RuntimeError: cuda runtime error (48) : no kernel image is available for execution on the device"


def test_each_says_what_it_means_what_mends_it_and_where_that_is_from() -> None:
    for error in gpu_errors():
        assert error.failure in FAILURE_CLASSES
        assert all((error.sign, error.sentence, error.fix, error.source, error.status))
        assert not error.sentence.endswith(".")
    signs = [error.sign.lower() for error in gpu_errors()]
    assert not [
        (a, b) for k, a in enumerate(signs) for b in signs[k + 1 :] if a in b
    ]  # a later one would never be told


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        (
            'could not select device driver "" with capabilities: [[gpu]]',
            "could not select device driver",
        ),
        ("failed to discover GPU vendor from CDI: no known GPU vendor found", "failed to discover GPU vendor"),
        (
            "nvidia-container-cli: initialization error: nvml error: insufficient permissions: unknown",
            "nvml error: insufficient permissions",
        ),
        ("nvidia-container-cli: initialization error: load library failed", "nvidia-container-cli"),
        ("cudaGetDeviceCount returned 804: FORWARD COMPATIBILITY WAS ATTEMPTED", "forward compatibility was attempted"),
    ],
)
def test_it_is_told_by_its_words(words: str, sign: str) -> None:
    error = known_gpu_error(words)
    assert error is not None
    assert error.sign == sign


def test_other_words_are_no_trouble() -> None:
    assert known_gpu_error("no such image: torch") is None


@pytest.mark.parametrize("source", ["reason", "log"])
def test_a_cell_that_fails_on_a_gpu_says_so(source: str) -> None:
    reply = {"status": "failed", "class": "crash", "reason": "it ended", "log": "", source: WORDS}
    record, log = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {"device": "H200"})
    assert record.failure == "arch"
    assert record.reason is not None
    assert record.reason.startswith("the package holds no code for this GPU: `runner plan` names the nearest")
    assert record.reason.endswith(f"({reply['reason']})")
    assert log == reply["log"]
    record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {"device": "cpu"})
    assert (record.failure, record.reason) == ("crash", reply["reason"])
