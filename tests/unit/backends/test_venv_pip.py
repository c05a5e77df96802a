"""Nothing is installed without a hash: not even the pip that old interpreters need first."""

import re
from pathlib import Path

import pytest

from runner.backends.docker.recipes import EXTENDED
from runner.backends.venv import PIP_FOR_OLD

DOCKERFILES = sorted((Path(__file__).parents[3] / "docker").glob("*.Dockerfile"))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_every_installation_of_an_image_requires_hashes(path: Path) -> None:
    text = path.read_text("utf-8")
    installations = re.findall(r"pip install [^&|;]*", text)
    assert len(installations) == 1 + (path.name != EXTENDED)  # the image of the other environment has a newer pip
    assert all("--require-hashes" in installation for installation in installations)
    assert (PIP_FOR_OLD.strip() in text) == (path.name != EXTENDED)
