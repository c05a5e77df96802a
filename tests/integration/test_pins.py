"""Images are pinned by what a registry says through the real engine, and a pin stays where no registry answers."""

from pathlib import Path

import pytest

from tests.fakes import registry
from tests.integration.conftest import Runner

pytestmark = pytest.mark.docker

MATRIX = """
version: 1
environments:
  torch-0.4: {{framework: torch, release: "0.4.0", image: "{host}/pytorch/pytorch:0.4"}}
  tf-1.8:
    framework: tensorflow
    release: "1.8.0"
    python: "3.6"
    variants:
      cpu: {{base: "{host}/python:3.6-slim", requirements: [tensorflow==1.8.0]}}
      cuda: {{image: "{host}/tensorflow:1.8.0-gpu-py3"}}
workloads:
  rnn-step: {{phases: [train]}}
"""


def test_pins_are_what_the_registries_say_and_are_renewed(runner: Runner) -> None:
    images = {"pytorch/pytorch:0.4": "one", "python:3.6-slim": "two", "tensorflow:1.8.0-gpu-py3": "three"}
    with registry.serving(images) as host:
        (runner.folder / "matrix.yaml").write_text(MATRIX.format(host=host))
        done = runner("lock", "--images")
        assert done.returncode == 0, done.stderr
        pins = runner.folder / "docker" / "pins.toml"
        assert pins.read_text().count("sha256:") == 3
        assert f'"{host}/pytorch/pytorch:0.4" = "{registry.digest("one")}"\n' in pins.read_text()
        pins.write_text("# ours\n" + pins.read_text() + f'"{host}/gone:1" = "sha256:{"0" * 64}"\n')
        images["python:3.6-slim"] = "newer"
        del images["tensorflow:1.8.0-gpu-py3"]
        done = runner("lock", "--images")
        assert done.returncode == 0, done.stderr
    assert f"python:3.6-slim: {registry.digest('newer')}, was {registry.digest('two')}" in done.stderr
    assert "pytorch:0.4: unchanged\n" in done.stderr
    assert "tensorflow:1.8.0-gpu-py3: unchanged (" in done.stderr
    assert "gone:1: removed: the matrix does not use it" in done.stderr
    text = pins.read_text()
    assert text.startswith("# ours\n")
    assert text.count("[images]") == 1
    assert (registry.digest("newer") in text, registry.digest("three") in text, "gone" in text) == (True, True, False)


def test_an_image_that_no_registry_gives_has_no_pin_and_that_is_said(runner: Runner, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    with registry.serving({"python:3.6-slim": "two"}) as host:
        (runner.folder / "matrix.yaml").write_text(MATRIX.format(host=host))
        done = runner("lock", "--images")
    assert done.returncode == 1
    assert "2 of 3 images have no pin" in done.stderr
    assert "pytorch:0.4: no pin (" in done.stderr
    assert (runner.folder / "docker" / "pins.toml").read_text().count("sha256:") == 1


def test_lock_wants_something_to_lock(runner: Runner) -> None:
    done = runner("lock")
    assert done.returncode == 2
    assert "--images" in done.stderr
