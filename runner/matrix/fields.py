"""The types of values in ``matrix.yaml``: checked, never converted."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError, PydanticKnownError

from runner.catalog.cases import WORKLOADS
from runner.core.model import Precision

Framework = Literal["torch", "tensorflow", "keras", "theano", "jax", "torch7", "numpy"]
Phase = Literal["compile", "compile-warm", "forward", "gradient", "train", "backward-weights", "backward-inputs"]

FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
FRAMEWORK_ALIASES: Mapping[str, Framework] = {"tf": "tensorflow", "pytorch": "torch", "lasagne": "theano"}


def _check_web_address(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise PydanticCustomError("address", "must be an http:// or https:// address")
    return value


def _check_workload(value: str) -> str:
    if value not in WORKLOADS:
        raise PydanticKnownError("literal_error", {"expected": ", ".join(f"'{name}'" for name in WORKLOADS)})
    return value


def _check_variant(value: str) -> str:
    if not re.fullmatch(r"cpu|cuda(-[0-9]+\.[0-9]+)?", value):
        raise PydanticKnownError("literal_error", {"expected": "'cpu', 'cuda', 'cuda-12.6'"})
    return value


VariantName = Annotated[str, AfterValidator(_check_variant)]
WorkloadName = Annotated[str, AfterValidator(_check_workload)]
EnvironmentId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9.]+)*$")]
Text = Annotated[str, Field(min_length=1)]
PythonVersion = Annotated[str, Field(pattern=r"^[0-9]\.[0-9]+$")]
WebAddress = Annotated[str, AfterValidator(_check_web_address)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=1, le=1000)]  # per second
Bytes = Annotated[int, Field(ge=0)]
Devices = Annotated[tuple[Literal["cpu", "cuda"], ...], Field(strict=False)]
Phases = Annotated[tuple[Phase, ...], Field(strict=False)]
Precisions = Annotated[tuple[Precision, ...], Field(strict=False)]
Patterns = Annotated[tuple[Text, ...], Field(strict=False)]


class Part(BaseModel):
    """A mapping in the file: frozen and without unknown keys.

    The text below an attribute is its description in the schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
