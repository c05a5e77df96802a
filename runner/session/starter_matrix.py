"""A small matrix file for some releases and a network, with the locks of these releases, as ``runner init`` writes it.

Each lock says what it was made from, and the matrix then has exactly that: ``lock_check`` finds that they fit.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from runner.backends.lock_file import LockFile, read_lock
from runner.core.architectures import USUAL
from runner.core.errors import Problem, UsageError
from runner.core.model import Device
from runner.core.paths import DEFAULT_MATRIX, packaged_folder
from runner.matrix import Environment, Matrix, Variant, load, parse, select_environments
from runner.matrix.model_file import Network, read_network
from runner.matrix.wrapper import parse_model
from runner.releases import index
from runner.releases.index import Lister
from runner.releases.lock_check import requirements_of
from runner.releases.newest import newest_minors
from runner.session.named_releases import with_named_releases
from runner.session.options import Options

HEADER = "# What `runner plan` shows and `runner run` measures in this folder. `runner schema` describes all keys."
LOCKS = "locks"
"""The folder of the locks, beside the matrix file."""
USUAL_WORKLOAD = "  rnn-step: {cases: [lstm-b32-h128]}"
"""What is measured without a network: a step of an LSTM, which every framework has."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._=<>+~/-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterMatrix:
    """A small matrix file that is not written yet.

    Attributes:
        text: its content.
        locks: path below its folder -> the content of a lock.
        notes: sentences that the user should read.
    """

    text: str
    locks: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


def starter_matrix(
    releases: Sequence[str],
    model: str | None,
    folder: Path,
    device: Device,
    kept: Path,
    versions: Lister = index.versions,
) -> StarterMatrix:
    """Return a matrix of some releases and a network, and their locks.

    Args:
        releases: ``torch==2.9.1``, or ids of the matrix that comes with the program; without any, the newest release of
            each framework of the network, and the newest one of the minor version before it.
        model: a model file below the folder; None measures a step of an LSTM.
        folder: where the matrix will be.
        device: ``cpu`` or ``cuda``, which the releases are for.
        kept: the folder that keeps the locks of named releases.
        versions: lists the versions of a package.

    Raises:
        UsageError: there is neither a release nor a network, or the network cannot be in the matrix.
        NothingSelectedError: there is no such release.
        MatrixError: the model file has mistakes.
        ProvisionError: an index does not answer, or a release cannot be resolved.
    """
    network = None if model is None else _network(model, folder)
    source = packaged_folder() / DEFAULT_MATRIX
    matrix = load(source, networks=False)
    selectors = list(releases) or _newest(matrix, network, device, source.parent, versions)
    options = Options(selectors=selectors, matrix=source)
    named = with_named_releases(matrix, options, device, kept, versions)
    entries, locks = list[str](), dict[str, bytes]()
    for name in _in_typed_order(named.matrix, named.options.selectors or ()):
        environment, lock = named.matrix.environments[name], named.locks.get(name)
        variant = environment.variant(device)
        if variant is None:
            raise UsageError(Problem(f"{name} has no build for {device}", hint="name another release, or --device"))
        lock = lock or (source.parent / variant.lock if variant.lock else None)
        content, locked = read_lock(lock) if lock is not None and lock.is_file() else (None, None)
        path = f"{LOCKS}/{name}.txt" if variant.requirements or locked else ""
        if content is not None:
            locks[path] = content
        entries += _entry(name, environment, device, _source(environment, variant, locked, path))
    workload = USUAL_WORKLOAD if network is None else _workload(*network)
    text = "\n".join([HEADER, "version: 1", "environments:", *entries, "workloads:", workload, ""])
    parse(text.encode(), str(folder / DEFAULT_MATRIX), folder)
    return StarterMatrix(text=text, locks=locks, notes=named.notes)


def _in_typed_order(matrix: Matrix, selectors: Sequence[str]) -> list[str]:
    """Return the ids that selectors name, in the order of the selectors."""
    remaining = select_environments(matrix, selectors)
    included = [select_environments(matrix, [each]) for each in selectors if not each.startswith("!")] or [remaining]
    return [name for name in dict.fromkeys(each for names in included for each in names) if name in remaining]


def _network(model: str, folder: Path) -> tuple[str, str, Network]:
    """Return the name of a network's workload, the path of its file from the folder, and what it has."""
    named = parse_model(model)
    if named.is_wrapped or named.path is None:
        hint = f"save a model file: runner wrap '{named.text}' --output my_network.py"
        raise UsageError(Problem(f"a matrix names model files, and {named.text} is none", hint=hint))
    file = named.path
    entry = file / "model.py" if file.is_dir() else file
    if not entry.resolve().is_relative_to(folder.resolve()):
        message = f"{file} is outside of {folder.resolve()}, and a matrix names files of its own folder"
        raise UsageError(Problem(message, hint="copy it here, or run this command in its folder"))
    return named.workload, str(entry.resolve().relative_to(folder.resolve())), read_network(file)


def _newest(
    matrix: Matrix, network: tuple[str, str, Network] | None, device: Device, folder: Path, versions: Lister
) -> list[str]:
    """Return the releases to measure where none were named."""
    if network is None:
        hint = "name two: runner init numpy==1.26.4 numpy==2.3.0; or a network: runner init --model FILE"
        raise UsageError(Problem("there is nothing to measure", hint=hint))
    frameworks = network[2].classes
    return [each for name in frameworks for each in newest_minors(matrix, name, device, folder, versions)]


def _source(environment: Environment, variant: Variant, locked: LockFile | None, lock: str) -> dict[str, object]:
    """Return the keys that say how an environment is built; what its lock was made from where that is there."""
    usual_base = f"python:{environment.python}-slim"
    made_from = requirements_of(locked) if locked else ()
    indexes = (*locked.indexes, None) if locked else (variant.index,)
    keys: dict[str, object] = {
        "image": variant.image,
        "base": None if variant.base == usual_base else variant.base,
        "requirements": list(made_from or variant.requirements),
        "follow": variant.follow,
        "index": indexes[0],
        "find_links": variant.find_links,
        "cuda": variant.cuda,
        "cudnn": variant.cudnn,
        "lock": lock,
    }
    kept = {key: value for key, value in keys.items() if value}
    if environment.architecture == USUAL:
        return kept
    on_x86_64 = {key: value for key, value in kept.items() if key != "lock"}
    return {**on_x86_64, environment.architecture: kept}  # the lock is for this architecture


def _entry(name: str, environment: Environment, device: Device, source: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of an environment."""
    yield f"  {name}:"
    yield f"    framework: {environment.framework}"
    yield f"    release: {json.dumps(environment.release)}"
    if environment.python:
        yield f"    python: {json.dumps(environment.python)}"
    if environment.variants:
        yield f"    variants: {_written({next(iter(environment.variants_for(device))): source})}"
    else:
        yield from (f"    {key}: {_written(value)}" for key, value in source.items())
    if environment.env:
        yield f"    env: {_written(environment.env)}"


def _workload(name: str, file: str, network: Network) -> str:
    """Return the line of a network."""
    return f"  {_written(name)}: {_written({'file': file, 'phases': list(network.timed)})}"


def _written(value: object) -> str:
    """Return a value in the flow style of YAML; text is in quotes where it could be read as something else.

    >>> _written({"requirements": ["numpy==1.26.4", "jax[cuda12]==0.10.2"], "cuda": "12.9"})
    '{requirements: [numpy==1.26.4, "jax[cuda12]==0.10.2"], cuda: "12.9"}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(key)}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text else json.dumps(text)
