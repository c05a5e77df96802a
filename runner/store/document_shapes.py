"""The shapes of the documents of a run: plan, cases, machine, environments, profiles."""

from collections.abc import Mapping
from typing import Any, Literal, Required

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.store.shapes import CONFIG, CellId, Count, Integer, Number, RoundNumber, Seconds


@with_config(CONFIG)
class PlanRow(TypedDict, total=False):
    """A cell of ``plan.json``."""

    id: Required[CellId]
    verdict: Required[Literal["run", "skip"]]
    environment: str
    framework: str | None
    implementation: str
    kind: str | None
    workload: str
    case: str
    phase: str
    precision: str
    device: str | None
    code: str | None
    reason: str | None
    source: str | None
    nearest: list[str] | None
    jit: str | None
    deferred: str | None
    seconds: Number


@with_config(CONFIG)
class PlanFile(TypedDict, total=False):
    """``plan.json``."""

    device: str | None
    backend: str | None
    rounds: RoundNumber
    max_rounds: RoundNumber
    budget: Number | None
    seconds: Seconds
    threads: Count
    seed: Integer
    cells: Required[list[PlanRow]]


@with_config(CONFIG)
class Cases(TypedDict):
    """``cases.json``."""

    cases: dict[str, dict[str, Any]]


@with_config(CONFIG)
class MachineGpu(TypedDict):
    """A GPU of ``machine.json``."""

    uuid: str
    name: str
    driver: str | None


@with_config(CONFIG)
class Machine(TypedDict, total=False):
    """``machine.json``."""

    host: str | None
    kernel: str | None
    cpu: str | None
    cores: Count | None
    logical_cores: Count | None
    online_cpus: Count | None
    memory_bytes: Count | None
    governor: str | None
    load_average: list[Number] | None
    gpu: MachineGpu | None
    gpus: list[dict[str, Any]]


@with_config(CONFIG)
class EnvironmentFacts(TypedDict, total=False):
    """The facts about an environment that are calculated with."""

    framework: str | None
    release: str | None
    version: str | None
    digest: str | None
    packages: dict[str, str | None] | None


@with_config(CONFIG)
class Environments(TypedDict):
    """``environments.json``."""

    environments: dict[str, EnvironmentFacts]


@with_config(CONFIG)
class ProfileRow(TypedDict):
    """A row of a profile: what the calls of one operator take in one step."""

    name: str
    calls: Number
    host_seconds: Number
    device_seconds: Number
    total_seconds: Number


@with_config(CONFIG)
class ProfileRest(TypedDict):
    """The rows that a profile has no room for, together."""

    rows: Count
    host_seconds: Number
    device_seconds: Number


@with_config(CONFIG)
class ProfileFile(TypedDict, total=False):
    """A file of ``profiles/``; see ``harness.profiling.facts``."""

    cell: Required[CellId]
    reason: Required[str]
    profiler: str
    framework_version: str | None
    steps: Count
    step_seconds: Number
    plain_step_seconds: Number
    rows: list[ProfileRow]
    left_out: ProfileRest


DOCUMENTS: Mapping[str, TypeAdapter[Any]] = {
    "plan.json": TypeAdapter(PlanFile),
    "cases.json": TypeAdapter(Cases),
    "machine.json": TypeAdapter(Machine),
    "environments.json": TypeAdapter(Environments),
    "profile": TypeAdapter(ProfileFile),
}
