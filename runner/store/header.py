"""The header of a run: what it depends on, and what it takes to resume it. It is the first event of the journal."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from runner.core.bounds import STRICT, Argument, MetricName, open_dict
from runner.core.metrics import TIME
from runner.core.model.devices import ClockPolicy
from runner.core.model.plans import Measurement
from runner.store.shapes import value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What a run depends on, as its journal's ``begun`` event has it.

    Attributes:
        at: when it started, in UTC.
        plan: hash of the plan and of its cases.
        measurement: how each cell is measured.
        backend: ``docker``, ``venv`` or ``host``.
        device: ``cpu``, or the UUIDs of the GPUs with commas between them.
        device_name: the processor or the GPU; ``2 x H200`` for two.
        driver: the GPU's driver; None for a CPU.
        matrix: path of the matrix file.
        python: the interpreter that the host backend measures; ``framework`` is which one of its frameworks.
        clocks: the clock policy; None in runs of older programs.
        pin: whether steps on the CPU keep to cores of their own.
        harness: version of the measuring code.
        digests: environment -> digest of its content when it was first ready.
        command: the arguments of ``runner run``, with ``~`` for the home folder, for reports show them; empty in runs
            of older programs, as is the next.
        program: the version of the runner.
        profile: whether it keeps profiles.
        locks: environment -> the lock that a night used instead of the matrix's.
        as_is: environment -> how it was named, ``python:~/envs/a/bin/python`` or ``image:NAME``, for interpreters and
            images that are measured as they are; empty with the host backend.
        executor: the address of the scheduler whose hosts measure; empty where this host alone does.
        metrics: the names of the metrics whose open verdicts get further rounds.
    """

    __pydantic_config__ = STRICT

    at: str
    plan: str
    measurement: Measurement
    backend: str
    device: str
    device_name: str
    driver: str | None
    matrix: Argument
    python: Argument | None
    clocks: ClockPolicy | None = None
    pin: bool = False
    harness: str
    digests: Mapping[str, str]
    command: tuple[Argument, ...] = ()
    program: str = ""
    framework: str | None = None
    profile: bool = False
    locks: Mapping[str, Argument] = field(default_factory=dict)
    as_is: Mapping[str, Argument] = field(default_factory=dict)
    executor: Argument = ""
    metrics: tuple[MetricName, ...] = (TIME,)

    def event(self) -> dict[str, Any]:
        """Return the fields of the ``begun`` event."""
        return asdict(self)


HEADER = TypeAdapter(RunHeader)
FIELDS = TypeAdapter(open_dict("HeaderFields", get_type_hints(RunHeader, include_extras=True)))
"""The fields of a header that are there: a run of an older program is read without the others, but not resumed."""


def header_of(event: Mapping[str, Any]) -> RunHeader:
    """Return the header in a ``begun`` event; raises ValueError where a field is missing or has another type."""
    return value_of(event, HEADER)


def check_fields(event: Mapping[str, Any]) -> None:
    """Raise ValueError where a field of a header has another type than ``RunHeader`` says."""
    value_of(event, FIELDS)
