"""The types of values in ``matrix.yaml``: checked, never converted."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, NoReturn, get_args

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError, PydanticKnownError

from runner.core.model import Precision
from runner.core.model.cells import OWN_PHASE, PHASE_NAMES
from runner.core.text import without_credentials
from runner.core.units import MAX_COUNT, MAX_SECONDS
from runner.core.variables import is_name, refusal

Framework = Literal["torch", "tensorflow", "keras", "theano", "jax", "torch7", "numpy"]

FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
FRAMEWORK_ALIASES: Mapping[str, Framework] = {"tf": "tensorflow", "pytorch": "torch", "lasagne": "theano"}


LONGEST_TEXT = 1000  # characters; the longest of the shipped matrix has 100
LONGEST_ID = 64  # characters: an id is a part of file names, which have at most 255 bytes
LONGEST_STORED_ID = 2 * LONGEST_ID  # of an environment that a search has made: with a release, and a CUDA build
LONGEST_IMAGE = 255  # characters of a repository, distribution/reference, NameTotalLengthMax
LONGEST_FILE_NAME = 255  # bytes, NAME_MAX of Linux
ENVIRONMENT_ID = r"[a-z][a-z0-9]*(-[a-z0-9]+(\.[a-z0-9]+)*)*"
"""Names of built images contain the id, and a part of those may not begin or end with a dot, nor have two in a row."""

# What is no part of a line of text: control characters, line separators, and what changes the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# pip splits the lines of a lock as a shell does, so that quotes, a backslash, a space or ${NAME} change their meaning.
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]*")

# The grammar of https://github.com/distribution/reference, regexp.go and reference.go.
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_IMAGE = re.compile(
    rf"((?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@(?:{_DIGEST}))?"
)
_REPOSITORY = re.compile(rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]+)?(?:/{_COMPONENT})+")


def is_environment_id(text: str) -> bool:
    """Return whether a text can be the id of an environment, and so a part of paths and of names of images.

    >>> is_environment_id("torch-1.0"), is_environment_id("../x")
    (True, False)
    """
    return len(text) <= LONGEST_STORED_ID and re.fullmatch(ENVIRONMENT_ID, text) is not None


def _refuse(message: str, hint: str) -> NoReturn:
    """Raise an error of pydantic with a message, to follow the name of the value, and with a hint."""
    raise PydanticCustomError("refused", "{text}", {"text": message, "hint": hint})


def _check_text(value: str) -> str:
    if match := _CONTROL.search(value):
        if match[0] in "\n\r":
            _refuse("has a line break", "write it in one line, or begin it with '>-' instead of '>' or '|'")
        _refuse(f"has the control character U+{ord(match[0]):04X}", "remove it")
    return value


def _check_web_address(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        _refuse("must be an http:// or https:// address", "write an address such as https://example.org/wheels")
    if not _ADDRESS.fullmatch(value):
        _refuse("has a character that an address cannot have", "write it in percent-encoding: a space is %20")
    return value


def _check_image(value: str) -> str:
    match = _IMAGE.fullmatch(value)
    if match is None or len(match[1]) > LONGEST_IMAGE or re.fullmatch("[a-f0-9]{64}", match[1]):
        _refuse("is not the name of a Docker image", "write it as docker pull takes it, such as python:3.11-slim")
    return value


def _check_repository(value: str) -> str:
    host, _, path = value.partition("/")
    named = "." in host or ":" in host or host == "localhost"
    if not (named and path and _REPOSITORY.fullmatch(value)) or len(value) > LONGEST_IMAGE:
        _refuse("is not a repository of a registry", "write it as registry.example.com/team/matrix-runner")
    return value


def _check_requirement(value: str) -> str:
    try:
        requirement = Requirement(value)
    except InvalidRequirement:
        _refuse("is not a requirement (PEP 508)", "write a name and versions, such as numpy<2")
    if requirement.url is not None:
        _refuse("has an address or a path", f"write a version, such as {requirement.name}==1.0")
    return value


def _check_below(value: str, example: str) -> str:
    parts = PurePosixPath(value).parts
    if not parts or parts[0] == "/" or ".." in parts:
        _refuse("must be the path of a file below the matrix file's folder", f"such as {example}")
    if any(len(part.encode()) > LONGEST_FILE_NAME for part in parts):
        _refuse(f"has a name of more than {LONGEST_FILE_NAME} bytes", "write a shorter path")
    return value


def _check_lock(value: str) -> str:
    return _check_below(value, "docker/locks/torch-2.5.txt")


def _check_model_path(value: str) -> str:
    return _check_below(value, "models/my_network.py")


def _check_variable(name: str) -> str:
    if not is_name(name):
        _refuse("is not the name of a variable", "use letters, digits and underscores, and no digit first")
    if reason := refusal(name):
        _refuse(f"cannot be set for an environment: {reason}", "remove it")
    return name


def _check_variable_value(value: str) -> str:
    if without_credentials(value) != value:
        _refuse("has a user or a password in an address", "write the address without it: records hold all values")
    return _check_text(value)


def _check_phase(value: str) -> str:
    if value not in PHASE_NAMES and not OWN_PHASE.fullmatch(value):
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, PHASE_NAMES))})
    return value


def _check_variant(value: str) -> str:
    if not re.fullmatch(r"cpu|cuda(-[0-9]+\.[0-9]+)?", value):
        raise PydanticKnownError("literal_error", {"expected": "'cpu', 'cuda', 'cuda-12.6'"})
    return value


VariantName = Annotated[str, AfterValidator(_check_variant)]
EnvironmentId = Annotated[str, Field(pattern=f"^{ENVIRONMENT_ID}$", max_length=LONGEST_ID)]
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_check_text)]
PythonVersion = Annotated[str, Field(pattern=r"^[0-9]\.[0-9]{1,2}$")]
WebAddress = Annotated[Text, AfterValidator(_check_web_address)]
Image = Annotated[Text, AfterValidator(_check_image)]
Repository = Annotated[Text, AfterValidator(_check_repository)]
PackageRequirement = Annotated[Text, AfterValidator(_check_requirement)]
VariableName = Annotated[str, AfterValidator(_check_variable)]
VariableValue = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_check_variable_value)]
WorkloadName = Text  # runner.matrix.workloads checks which
LockPath = Annotated[Text, AfterValidator(_check_lock)]
ModelPath = Annotated[Text, AfterValidator(_check_model_path)]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Rate = Annotated[float, Field(ge=1, le=1000)]  # per second
Bytes = Annotated[int, Field(ge=0, le=10**15)]  # a petabyte
Devices = Annotated[tuple[Literal["cpu", "cuda"], ...], Field(strict=False)]
PhaseName = Annotated[
    str,
    AfterValidator(_check_phase),
    WithJsonSchema({"anyOf": [{"enum": list(PHASE_NAMES)}, {"type": "string", "pattern": f"^{OWN_PHASE.pattern}$"}]}),
]
"""A phase of the program, or one that a model file names."""
Phases = Annotated[tuple[PhaseName, ...], Field(strict=False)]
Precisions = Annotated[tuple[Precision, ...], Field(strict=False)]
Patterns = Annotated[tuple[Text, ...], Field(strict=False)]


class Part(BaseModel):
    """A mapping in the file: frozen and without unknown keys.

    The text below an attribute is its description in the schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
