"""Names that must not reach an engine, and pins that cannot be used."""

from pathlib import Path

import pytest

from runner.backends.docker.build import inspect
from runner.backends.docker.image_names import is_image_name, pins
from runner.core.errors import ProvisionError, UsageError

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "name",
    ["python", "python:3.6-slim", "a/b:1", "nvcr.io/nvidia/pytorch:24.01-py3", "localhost:5000/x", f"p@{DIGEST}"],
)
def test_is_image_name_of_usual_names(name: str) -> None:
    assert is_image_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "x y", "x\nRUN id", "x\0", "--help", "/x", "x?fromImage=y", "x#y", "x%2e%2e", "é", "x" * 600),
        *("..", "../x", "x/..", "x/../../containers/some", "x/./y", "x//y", "x\\..\\y"),
    ],
)
def test_name_that_could_lead_the_engine_elsewhere_is_refused_before_it_is_asked(name: str) -> None:
    assert not is_image_name(name)
    with pytest.raises(ProvisionError) as raised:
        inspect(None, name)  # type: ignore[arg-type]
    assert raised.value.code == "image-pull"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[images", "is not TOML"),
        ("x = " + "[" * 100_000, "is not TOML"),
        ("\ufeffimages = 1", "is not TOML"),
        ('images = "x"', r"needs a table \[images\]"),
        ("[images]\na = 1", "pins 'a' to something"),
        ('[images]\na = "sha256:00"', "pins 'a' to something"),
        ('[images]\n"\\u001b[2J" = "x"', r"pins '\\\\x1b\[2J' to something"),
        (f'[images.a]\nb = "{DIGEST}"', "pins 'a' to something"),
    ],
)
def test_broken_pins_are_a_usage_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pins.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        pins(path)
    assert str(path) in str(raised.value)
    assert raised.value.problems[0].hint


def test_pins_that_are_no_text_or_no_file_are_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "pins.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not TOML"):
        pins(path)
    with pytest.raises(UsageError, match="cannot be read"):
        pins(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        pins(Path("/dev/zero"))


def test_pins_are_digests_by_name(tmp_path: Path) -> None:
    path = tmp_path / "pins.toml"
    assert pins(path) == {}
    path.write_text(f'[images]\n"python:3.6-slim" = "{DIGEST}"\n')
    assert pins(path) == {"python:3.6-slim": DIGEST}
    path.write_text("")
    assert pins(path) == {}
