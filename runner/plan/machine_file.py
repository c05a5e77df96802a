"""Read and check the description of another machine, which ``runner doctor --format json`` wrote there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from runner.core.architectures import USUAL, Architecture, architecture_of
from runner.core.bounds import Count, Positive
from runner.core.errors import Problem, RecordError, UsageError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.core.model import Gpu
from runner.core.text import printable, without_label

MACHINE_BYTES = 1 << 20  # `runner doctor` writes 3 KB, and 1 KB for each GPU
HOW_TO_MAKE = "make one with `runner doctor --format json -o FILE` on that machine"
MAX_SHOWN = 40  # characters of a value in a message


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)  # doctor writes more than a plan needs


class _Gpu(_Part):
    name: str
    capability: Annotated[tuple[Count, Count], Field(strict=False)]
    driver: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    memory: Count = 0
    uuid: str = ""


class _Machine(_Part):
    cores: Positive
    memory_bytes: Positive
    memory_limit_bytes: Positive | None = None
    gpus: Annotated[tuple[_Gpu, ...], Field(strict=False)]
    cpu: str = "a processor"
    architecture: Literal["x86_64", "amd64", "aarch64", "arm64"] = USUAL
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
        architecture: of its processor.
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
    architecture: Architecture = USUAL


def read_machine_file(path: Path) -> MachineDescription:
    """Return the machine that a file describes.

    Raises:
        UsageError: the file cannot be read, or does not describe a machine; the error has every mistake with its keys.
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
        raise UsageError(*(_problem(path, detail) for detail in error.errors(include_url=False))) from None
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
        architecture=architecture_of(machine.architecture),
    )


def _gpu(number: int, gpu: _Gpu) -> Gpu:
    uuid = gpu.uuid or f"GPU-described-{number}"
    return Gpu(uuid=uuid, name=gpu.name, capability=gpu.capability, driver=gpu.driver, memory=gpu.memory)


def _problem(path: Path, detail: ErrorDetails) -> Problem:
    """Return a mistake with the keys that lead to it: machines write these files."""
    field = printable(".".join(map(str, detail["loc"])), 200) or "the file"
    if detail["type"] == "missing":
        return Problem(f"{path}: {field} is missing", hint=HOW_TO_MAKE)
    message = without_label(detail["msg"])
    reason = f"{message[:1].lower()}{message[1:]}"
    input_text = json.dumps(detail["input"])[:MAX_SHOWN]
    return Problem(f"{path}: {field}: {reason}, found {input_text}", hint=HOW_TO_MAKE)
