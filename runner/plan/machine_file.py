"""Read and check the description of another machine, which ``runner doctor --format json`` wrote there."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from runner.core.errors import MatrixError, Problem, RecordError, UsageError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.core.model import Gpu
from runner.matrix.yaml_source import UNPRINTABLE, YamlSource, compose
from runner.matrix.yaml_tree import Path as TreePath
from runner.matrix.yaml_tree import Tree, build_tree

MACHINE_BYTES = 1 << 20  # `runner doctor` writes 3 KB, and 1 KB for each GPU
HOW_TO_MAKE = "make one with `runner doctor --format json -o FILE` on that machine"
EXPECTED_BY_KEY: Mapping[str, str] = {
    "capability": "a list of two whole numbers, such as [9, 0]",
    "driver": "a version, such as 580.65.06",
    "version": "1",
}
"""Key -> the value that it must have."""
EXPECTED_BY_TYPE: Mapping[str, str] = {
    "int": "a whole number",
    "string": "text",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
    "greater": "larger",
}
"""First word of the type of a pydantic error -> the value that is expected."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)  # doctor writes more than a plan needs


class _Gpu(_Part):
    name: str
    capability: Annotated[tuple[int, int], Field(strict=False)]
    driver: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    memory: Annotated[int, Field(ge=0)] = 0
    uuid: str = ""


class _Machine(_Part):
    cores: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(ge=1)]
    memory_limit_bytes: Annotated[int, Field(ge=1)] | None = None
    gpus: Annotated[tuple[_Gpu, ...], Field(strict=False)]
    cpu: str = "a processor"
    glibc: str | None = None
    engine: dict[str, Any] | None = None
    interpreters: dict[str, str | None] = {}


class _Description(_Part):
    version: Literal[1]
    machine: _Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDescription:
    """The facts of a machine that a plan depends on.

    Attributes:
        file: the file that describes the machine.
        cpu: the name of its processor.
        cores: the physical cores that processes may use.
        memory: the bytes of memory that processes may use.
        gpus: the GPUs, in the order in which a framework numbers them.
        engine: whether a container engine answers there.
        passes_gpus: whether the engine can pass GPUs to a container.
        interpreters: minor version of Python -> whether it is installed; only versions that were looked for.
        glibc: the version of the C library; None if unknown.
    """

    file: Path
    cpu: str
    cores: int
    memory: int
    gpus: tuple[Gpu, ...]
    engine: bool
    passes_gpus: bool
    interpreters: Mapping[str, bool]
    glibc: str | None


def read_machine_file(path: Path) -> MachineDescription:
    """Return the machine that a file describes.

    Raises:
        UsageError: the file cannot be read, or does not describe a machine; the error has every mistake with its place.
    """
    try:
        text = read_bounded(path, MACHINE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        raise UsageError(Problem(message, hint=HOW_TO_MAKE)) from error
    try:
        document = parse_object(text, path, 1)
    except RecordError as error:
        raise UsageError(*error.problems) from error
    try:
        machine = _Description.model_validate(document).machine
    except ValidationError as error:
        raise UsageError(*_problems(_tree(text, path), error)) from None
    return MachineDescription(
        file=path,
        cpu=machine.cpu,
        cores=machine.cores,
        memory=machine.memory_limit_bytes or machine.memory_bytes,
        gpus=tuple(_gpu(number, gpu) for number, gpu in enumerate(machine.gpus)),
        engine=machine.engine is not None,
        passes_gpus=machine.engine is not None and machine.engine.get("gpus") is not False,
        interpreters={version: where is not None for version, where in machine.interpreters.items()},
        glibc=machine.glibc,
    )


def _gpu(number: int, gpu: _Gpu) -> Gpu:
    uuid = gpu.uuid or f"GPU-described-{number}"
    return Gpu(uuid=uuid, name=gpu.name, capability=gpu.capability, driver=gpu.driver, memory=gpu.memory)


def _tree(text: str, path: Path) -> Tree:
    """Return the place of every value: JSON is a subset of YAML, whose parser keeps the places.

    JSON allows a few characters that YAML does not, such as U+007F. They do not move a place.
    """
    source = YamlSource(str(path), UNPRINTABLE.sub("\ufffd", text))
    try:
        return build_tree(source, compose(source))
    except MatrixError as error:
        raise UsageError(*error.problems) from error


def _problems(tree: Tree, error: ValidationError) -> tuple[Problem, ...]:
    problems = [_problem(tree, detail) for detail in error.errors(include_url=False)]
    return tuple(dict.fromkeys(problems))


def _problem(tree: Tree, detail: ErrorDetails) -> Problem:
    path: TreePath = detail["loc"]
    while path not in tree.values:
        path = path[:-1]
    if detail["type"] == "missing":
        where = tree.source.node(tree.keys.get(path, tree.values[path]))
        key = str(detail["loc"][-1])
        keys = [str(key_path[-1]) for key_path in tree.keys if key_path[:-1] == path]
        close = difflib.get_close_matches(key, keys, 1)
        return Problem(f"key {key!r} is missing", where, f"rename {close[0]!r}" if close else HOW_TO_MAKE)
    name = next((part for part in reversed(path) if isinstance(part, str)), "it")
    expected = EXPECTED_BY_KEY.get(name) or EXPECTED_BY_TYPE.get(detail["type"].partition("_")[0])
    message = f"{name} must be {expected}" if expected else f"{name}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    where = tree.source.node(tree.values[path])
    return Problem(f"{message}, found {tree.source.token(tree.values[path])}", where, HOW_TO_MAKE)
