"""What may stand in ``matrix.yaml``: frozen models that accept no unknown key and convert nothing."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from runner.catalog.cases import WORKLOADS
from runner.core.model import Device, Precision, Protocol

Framework = Literal["torch", "tensorflow", "keras", "theano", "jax", "torch7", "numpy"]
Phase = Literal["compile", "compile-warm", "forward", "gradient", "train", "backward-weights", "backward-inputs"]

FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
FRAMEWORK_ALIASES: Mapping[str, Framework] = {"tf": "tensorflow", "pytorch": "torch", "lasagne": "theano"}


def _is_web_address(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise PydanticCustomError("address", "must be an http:// or https:// address")
    return value


def _is_workload(value: str) -> str:
    if value not in WORKLOADS:
        raise PydanticKnownError("literal_error", {"expected": ", ".join(f"'{name}'" for name in WORKLOADS)})
    return value


def _as_selector(value: object) -> object:
    """Return a bare glob as the selector of these cases."""
    return {"cases": (value,)} if isinstance(value, str) else value


WorkloadName = Annotated[str, AfterValidator(_is_workload)]
EnvironmentId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9.]+)*$")]
Text = Annotated[str, Field(min_length=1)]
PythonVersion = Annotated[str, Field(pattern=r"^[0-9]\.[0-9]+$")]
WebAddress = Annotated[str, AfterValidator(_is_web_address)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=1, le=1000)]
Bytes = Annotated[int, Field(ge=0)]
Phases = Annotated[tuple[Phase, ...], Field(strict=False)]
Precisions = Annotated[tuple[Precision, ...], Field(strict=False)]
Patterns = Annotated[tuple[Text, ...], Field(strict=False)]


class BrokenRule(NamedTuple):
    """A rule between the keys of one environment that does not hold; ``at`` is the key to point at, if any."""

    at: str | None
    message: str
    hint: str


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class _Source(_Part):
    base: Text | None = None
    """The Docker image to build on; python:<python>-slim where this is left out."""
    lock: Text | None = None
    """The requirements with their hashes, a path relative to the matrix file; `runner lock` writes it."""
    requirements: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """What `runner lock` resolves, in pip's notation."""
    index: WebAddress | None = None
    """An extra package index, which the lock names."""
    find_links: WebAddress | None = None
    """A page of links to wheels that no index has."""
    cuda: Text | None = None
    """The CUDA version the packages or the image carry, such as "9.0"; left out where there is none."""
    cudnn: Text | None = None
    """The cuDNN version they carry, such as "7.1"."""
    download_bytes: Bytes | None = None
    """About how many bytes fetching it takes; told before anything is fetched."""
    disk_bytes: Bytes | None = None
    """About how many bytes it takes on the disk once it is made."""


class Variant(_Source):
    """How an environment is made for one device, cpu or cuda."""

    image: Text | None = None
    """An image to pull and use as it is, instead of building one."""


_SOURCE_KEYS = tuple(_Source.model_fields)


def broken_rules(keys: Mapping[str, object]) -> tuple[BrokenRule, ...]:
    """Return the rules between the keys of one environment that do not hold.

    Args:
        keys: the environment as written or as read; None and empty values count as left out.
    """
    present = {name for name, value in keys.items() if value not in (None, (), [], {})}
    rules = []
    if not present & {"image", "python"}:
        rules.append(BrokenRule(None, "needs an image, or a python and what to install", "add image: or python:"))
    elif "image" not in present and not present & {"lock", "requirements", "variants"}:
        hint = "add lock:, requirements: or variants:"
        rules.append(BrokenRule("python", "does not say what to install", hint))
    if {"image", "lock"} <= present:
        rules.append(BrokenRule("lock", "has both an image and a lock", "an image is pulled as it is: remove one"))
    if {"image", "variants"} <= present:
        rules.append(
            BrokenRule("variants", "has both an image and variants", "an image is pulled as it is: remove one")
        )
    elif "variants" in present:
        misplaced = [name for name in _SOURCE_KEYS if name in present]
        rules += [BrokenRule(n, f"has variants, and {n} outside of them", f"move {n} into variants") for n in misplaced]
    return tuple(rules)


class Environment(_Source):
    """A framework release with its interpreter and packages: an image to pull, or what to install."""

    framework: Framework
    """The framework that is measured."""
    release: Text
    """The release as the framework spells it, such as "1.0.0"; "2.*" floats and stands for the newest 2.x."""
    python: PythonVersion | None = None
    """The Python version, in quotes: YAML reads 3.10 as the number 3.1."""
    image: Text | None = None
    """An image to pull and use as it is, instead of building one."""
    variants: dict[Device, Variant] = {}
    """One entry each for cpu and cuda, where the two need different packages."""
    note: Text | None = None
    """A remark for people."""

    def variant(self, device: Device) -> Variant | None:
        """Return how to make the environment for a device, or None where it has variants but not this one.

        ``base`` is filled in where the environment is built and leaves it out.
        """
        if self.variants and device not in self.variants:
            return None
        default = Variant(image=self.image, **{name: getattr(self, name) for name in _SOURCE_KEYS})
        variant = self.variants.get(device, default)
        if variant.base is None and variant.image is None:
            return variant.model_copy(update={"base": f"python:{self.python}-slim"})
        return variant

    @model_validator(mode="after")
    def _rules_hold(self) -> "Environment":
        rules = broken_rules({name: getattr(self, name) for name in type(self).model_fields})
        if rules:
            raise PydanticCustomError("rule", "{text}", {"text": "; ".join(rule.message for rule in rules)})
        return self


class WorkloadChoice(_Part):
    """Which cases of a workload are measured, and how."""

    cases: Annotated[tuple[Text, ...], Field(strict=False)] = ("*",)
    """Case names; * and ? stand for any text and any letter."""
    phases: Phases = ("forward", "train")
    """What is timed."""
    precisions: Precisions = ("fp32",)
    """In which precisions."""


class Exclude(_Part):
    """Cells that are left out, and why."""

    select: Text
    """A glob over cell ids, environment/implementation/workload/case/phase/precision."""
    reason: Text
    """Why, in a sentence; the plan shows it."""


class Selector(_Part):
    """Cells that a preset includes: those that fit every key. * and ? stand for any text and letter, ! excludes."""

    cases: Patterns = ()
    """Cases as workload/case, or one phase of them as workload/case/phase; all of them by default."""
    phases: Phases | None = None
    """What is timed; by default what the preset or the workload says."""
    environments: Patterns = ()
    """Environment ids; all of them by default."""
    implementations: Patterns = ()
    """Implementations such as nn-lstm; all of them by default."""
    precisions: Precisions | None = None
    """The precisions; by default those of the preset."""


class Preset(_Part):
    """A named selection with its own effort, for `--preset`."""

    select: Annotated[tuple[Annotated[Selector, BeforeValidator(_as_selector)], ...], Field(strict=False)]
    """What the preset includes: cells that any of these selectors fits. A text alone is a pattern of `cases`."""
    protocol: Protocol = "aligned"
    """aligned: the same computation everywhere; published: what the original programs did and timed."""
    rounds: Count = 3
    """Fresh processes for each cell."""
    max_rounds: Count | None = None
    """As many for cells whose verdict is open until then; what measure says, where it is left out."""
    seconds: Seconds = 2.0
    """Seconds of measured iterations for each cell and round."""
    phases: Phases | None = None
    """What is timed, where it is not what the workload says."""
    precisions: Precisions | None = None
    """In which precisions, of those that the workload lists; in all of them, where it is left out."""


class Measure(_Part):
    """How everything is measured."""

    rounds: Count = 3
    """Fresh processes for each cell."""
    max_rounds: Count = 20
    """As many for cells whose verdict is open until then."""
    seconds: Seconds = 2.0
    """Seconds of measured iterations for each cell and round."""
    timeout: Seconds = 600.0
    """Seconds after which a cell's process is killed."""
    threads: Count | None = None
    """CPU threads for every framework; all physical cores this process may use, where it is left out."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The difference that counts as none: 0.02 is two in a hundred."""
    controls: bool = True
    """Whether each case gets an A/A pair, an environment beside itself, and a canary before each round."""
    restart: Count = 1
    """Rounds after which the servers are replaced by fresh ones."""


class GpuSettings(_Part):
    """How the GPU is held while it measures."""

    clocks: Literal["base", "max", "leave"] | Count = "base"
    """The clock of the multiprocessors: base, max, a number of MHz, or leave, which changes nothing."""
    memory: Literal["max", "leave"] | Count | None = None
    """The clock of the memory, likewise; left out it is max, and leave where clocks is leave."""
    telemetry: Literal[0] | Rate = 10.0
    """Readings of clocks, power, heat and what holds the clocks back in a second; 0 reads nothing."""


class Matrix(_Part):
    """The environments, what they compute and how it is measured."""

    version: Literal[1]
    """The version of this format."""
    environments: dict[EnvironmentId, Environment]
    """The framework releases by id; the id is what selections, results and reports call them."""
    workloads: dict[WorkloadName, WorkloadChoice]
    """What is computed."""
    presets: dict[Text, Preset] = {}
    """Selections by name, for `--preset`."""
    measure: Measure = Measure()
    """The effort, and what counts as the same."""
    gpu: GpuSettings = GpuSettings()
    """What is done to the GPU beforehand, and undone afterwards."""
    exclude: Annotated[tuple[Exclude, ...], Field(strict=False)] = ()
    """Cells that are left out, and why."""

    @field_validator("version", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        return value if type(value) is int else repr(value)  # to Python, 1 equals True and 1.0


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a matrix file; a fresh dict each time."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    model = Matrix.model_json_schema()
    model["properties"]["workloads"]["propertyNames"] = {"enum": list(WORKLOADS)}
    return head | model | {"title": "matrix.yaml"}
