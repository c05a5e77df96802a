"""Lines of pip, old and new, as progress."""

import io
import logging

import pytest

from runner.backends.pip_log import pip_hint, pip_progress, without_logging_errors


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "  Downloading grpcio-1.80.0-cp311-cp311-linux_x86_64.whl (6.8 MB)",
            "downloading grpcio 1.80.0, 6.8 MB",
        ),
        (
            "  Downloading https://i.test/numpy-1.19.5-cp36-cp36m.whl (14.8MB)",
            "downloading numpy 1.19.5, 14.8 MB",
        ),
        ("Downloading big-2.0.tar.gz (1.2 GB)", "downloading big 2.0, 1.2 GB"),
        ("  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)", None),
        ("Installing collected packages: six, numpy, jax", "installing 3 packages"),
        ("  Building wheel for theano (setup.py): started", "building theano from source"),
        ("Collecting tensorflow-cpu==2.18.0 (from -r /c/venvs/tf-2.18-a1e526e783d1/lock.txt (line 549))", None),
        ("Looking in indexes: https://i.test/simple", None),
        ("WARNING: Location 'file:///wheels/six/' is ignored: it is neither a file nor a directory.", None),
        ("Successfully installed numpy-1.19.5", None),
    ],
)
def test_downloads_and_the_installation_are_progress(line: str, expected: str | None) -> None:
    assert pip_progress(line) == expected


def test_a_failed_installation_has_a_hint_where_the_cause_is_known() -> None:
    assert "`runner lock`" in str(pip_hint("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."))
    assert "wheel" in str(pip_hint("ERROR: No matching distribution found for numpy==1.0"))
    assert pip_hint("Killed") is None
    assert "free space" in str(pip_hint("ERROR: Could not install: [Errno 28] No space left on device: '/c/venvs/x'"))


class FullDisk(io.StringIO):
    """A log file whose disk is full."""

    def write(self, _text: str) -> int:
        """Refuse a text."""
        raise OSError(28, "No space left on device")


def test_an_error_outlives_the_traces_of_a_log_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(FullDisk())
    for number in range(3):
        handler.handle(logging.makeLogRecord({"msg": "Removed build tracker: %r", "args": (number,)}))
    traces = capsys.readouterr().err.splitlines()
    assert len(traces) > 30
    error = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    lines = ["Installing collected packages: numpy", *traces, error, *traces, "WARNING: pip is old"]
    assert list(without_logging_errors(lines)) == [lines[0], error, lines[-1]]
