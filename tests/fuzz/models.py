"""The targets ``model`` and ``typed``: model files, and what is typed to choose networks and environments.

- ``model``: bytes of a model file; it is read, and a wrapper is written for each class and function of it.
- ``typed``: ``{"model": [TEXT, ...], "input": [TEXT, ...], "selectors": [TEXT, ...], "env": [TEXT, ...], "threads":
  TEXT, "holds": [FRAMEWORK, RELEASE, PYTHON]}``, the values of the options of ``runner run``, in a folder with a model
  file and two files of classes; ``holds`` is what an interpreter or an image says of itself. Named releases get a
  lock, without an index.
"""

import atexit
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from runner.backends import Installed
from runner.core.errors import RunnerError
from runner.matrix import Matrix, choose_cells, parse, select_environments, split_selectors
from runner.matrix.model_file import read_network
from runner.matrix.wrapper import parse_model, read_model
from runner.releases import lock, release_files
from runner.releases.existing import portable
from runner.releases.lock_requests import LockRequest
from runner.releases.named import as_typed, with_id
from runner.session.existing import backend_for, with_existing
from runner.session.named_releases import with_named_releases
from runner.session.networks import with_models
from runner.session.options import Options
from runner.session.typed_variants import typed_threads, with_typed_variants
from tests.fuzz.folders import MEMORY
from tests.fuzz.limits import ROOT
from tests.fuzz.plans import small_matrix
from tests.fuzz.values import to_json
from tests.support.fake_servers import FakeBackend

MODEL, NETS = "model.py", "nets.py"
HOLDS = ("torch", "2.9.1", "3.11")
"""What an interpreter or an image says of itself, unless an input has something else."""
CLASSES = b"""\
import torch
from torch import nn

class UNet(nn.Module):
    def __init__(self, channels=3, *, bilinear=False):
        super().__init__()
        self.layer = nn.Conv2d(channels, 8, 3)

    def forward(self, x):
        return self.layer(x)

class Base:
    pass

class Tagger(Base, nn.Module):
    def forward(self, words, tags=None):
        return words

def build(width: int = 8):
    return nn.Linear(width, width)
"""


def model_files() -> Sequence[bytes]:
    """Return the shipped model files, and a file of classes."""
    return (*(path.read_bytes() for path in sorted((ROOT / "examples").glob("*.py"))), CLASSES)


@cache
def _workplace() -> Path:
    """Return a folder with a model file and files of classes; it stays until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-models-", dir=MEMORY if MEMORY.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / NETS).write_bytes(CLASSES)
    (folder / "small").mkdir()
    (folder / "small" / "model.py").write_bytes((ROOT / "examples" / "smallest.py").read_bytes())
    (folder / "config.json").write_text('{"model_type": "bert", "hidden_size": 8}')
    return folder


@cache
def _matrix() -> Matrix:
    return parse(to_json(small_matrix()).encode(), "matrix.yaml")


def _listed(_package: str, python: str, _nightly: str) -> tuple[tuple[str, ...], str]:
    """Return what an index has; see ``releases.index.versions``."""
    return (("2.18.0", "2.9.1", "2.9.1+cu126", "1.26.4", "1.0", "0.8.1"), "") if python == "3.11" else ((), "none")


def _resolved(_command: object, request: LockRequest) -> str:
    """Return what uv prints for a request: the packages that it names with a version."""
    requirements = filter(lambda each: "==" in each, request.requirements)
    return "".join(f"{each} --hash=sha256:{'0' * 64}\n" for each in requirements)


def run_model(content: bytes) -> None:
    """Read a model file, and write the wrapper of each thing in it; the file is never run."""
    path = _workplace() / MODEL
    path.write_bytes(content)
    refused: RunnerError | None = None
    try:
        _described(path)
    except RunnerError as error:
        refused = error
    for name in ("UNet", "Tagger", "build", "TorchModel", "JaxModel"):
        with contextlib.suppress(RunnerError):
            read_model(parse_model(f"{path}:{name}"), ["2x3x8x8"])
    if refused is not None:
        raise refused


def _described(path: Path) -> None:
    network = read_network(path)
    json.dumps(network.specs(path.stem), allow_nan=False)


class _Probed(FakeBackend):
    """A backend that finds the same in every interpreter and image: framework, release, Python."""

    def __init__(self, holds: Sequence[str]) -> None:
        super().__init__()
        self.holds = holds

    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        """See Backend."""
        assert environment
        held, release, python = self.holds
        return Installed(python=source, framework=framework or held, release=release, python_version=python)


def run_typed(value: Mapping[str, Any]) -> None:
    """Choose networks and environments by what is typed."""
    before = Path.cwd()
    os.chdir(_workplace())
    try:
        typed = {name: words for name, words in value.items() if words and name != "holds"}
        _chosen(Options(matrix=_workplace() / "matrix.yaml", **typed), value.get("holds") or HOLDS)
    finally:
        os.chdir(before)


def _chosen(options: Options, holds: Sequence[str]) -> None:
    """Choose as ``session.context`` does, and say in commands what was chosen."""
    typed_threads(options)
    backend_for(options)
    words = options.selectors or ()
    matrix, _ = with_models(_matrix(), options)
    existing = with_existing(matrix, options, _Probed(holds))
    with patch.object(lock, "_output_of", _resolved), patch.object(release_files, "files_of", lambda *_: []):
        named = with_named_releases(existing.matrix, existing.options, "cpu", _workplace() / "cache", _listed)
    matrix, options = with_typed_variants(named.matrix, named.options)
    environments, cells = split_selectors(options.selectors or ())
    ids = select_environments(matrix, environments)
    chosen = choose_cells(matrix, cells)
    chosen("torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32")
    options.to_argv()
    as_typed(ids, words)
    for word in words:
        portable(word)
        with_id(word, matrix)
