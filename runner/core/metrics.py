"""What is compared of two releases: time, memory and others, one entry each. Whatever reads a metric reads this table.

A smaller value is better in all of them. To add a metric, add an entry to ``METRICS``.
"""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from runner.core.errors import Problem, UsageError

Unit = Literal["seconds", "bytes", "joules", "instructions"]
Scope = Literal["cell", "environment"]
"""``cell``: each round of a cell has a value. ``environment``: each server has one, whichever cells it measures."""
Change = Literal["slower", "faster", "more", "less", "fewer"]
CHANGES: frozenset[str] = frozenset(get_args(Change))
"""The verdicts of rows that changed."""


class Metric(NamedTuple):
    """A quantity that is compared, and the words for its changes.

    Attributes:
        name: in options, in JSON and CSV, and in conditions of ``--fail-on`` unless ``condition`` is another word.
        title: what a heading calls it.
        unit: of its values.
        worse: the verdict if the other side has the larger value; ``better`` if it has the smaller one.
        noun: what follows the verdict in a sentence, ``1.30x more memory``.
        margin: changes up to this share count as none. For time, the matrix has the margin.
        method: how it is measured, as a clause.
        absent: why a record can lack it, as a clause.
        absent_in: kind of phase, ``compile`` or ``published`` -> why no record of such a phase has it, as a clause.
        scope: whether a cell or an environment has a value.
        on_cpu: the name of the fact with the value, for cells on a CPU; ``on_gpu`` likewise. Empty if there is none.
        quantile: if not 0, the value is this quantile of the times of a round's calls, and no fact has it.
        floor: smaller values are replaced by it, so that they compare as equal.
        resolution: the smallest difference between two values that is measured, in its unit.
        exact: whether all servers of an environment have the same value, so that one value is enough.
        on_disk: whether its values are sizes of files, which are shown in decimal units.
        first_differs: whether the first server of an environment differs from later ones, and is left out if there
            are some.
    """

    name: str
    title: str
    unit: Unit
    worse: Change
    better: Change
    noun: str
    margin: float
    method: str
    absent: str
    absent_in: Mapping[str, str] = MappingProxyType({})
    scope: Scope = "cell"
    on_cpu: str = ""
    on_gpu: str = ""
    quantile: float = 0.0
    floor: float = 0.0
    resolution: float = 0.0
    exact: bool = False
    first_differs: bool = False
    condition: str = ""
    on_disk: bool = False

    def fact(self, device: str) -> str:
        """Return the name of the fact with the value on a device; empty if there is none."""
        return self.on_cpu if device == "cpu" else self.on_gpu

    @property
    def is_of_facts(self) -> bool:
        """Whether its values are facts of records; times of calls and their quantiles are samples."""
        return bool(self.on_cpu or self.on_gpu)

    def why_absent_in(self, phase: str) -> str:
        """Return why no record of a phase has a value, as a clause; empty if records can have one."""
        of_kind = (why for kind, why in self.absent_in.items() if phase.startswith(kind) or phase.endswith(f"+{kind}"))
        return next(of_kind, "")

    def change(self, ratio: float) -> Change:
        """Return the verdict of a ratio, other over base, of a row that changed."""
        return self.worse if ratio > 1 else self.better

    @property
    def phrase(self) -> str:
        """A change for the worse: ``slower``, ``more memory``, ``slower to import``."""
        return f"{self.worse} {self.noun}".rstrip()

    @property
    def word(self) -> str:
        """Its name in a condition of ``--fail-on``."""
        return self.condition or self.name


TIME = "time"
OF_MANY_CALLS = MappingProxyType({"compile": "it is measured over many calls, and a compile phase has one"})
METRICS: tuple[Metric, ...] = (
    Metric(
        name=TIME,
        title="time of a call",
        unit="seconds",
        worse="slower",
        better="faster",
        noun="",
        margin=0.02,
        method="the sides take turns, and are compared call by call",
        absent="the test has no good record",
        condition="slower",
    ),
    Metric(
        name="memory",
        title="peak memory of the steps",
        unit="bytes",
        worse="more",
        better="less",
        noun="memory",
        margin=0.02,
        method="on a CPU the peak of the resident memory that a process has beyond its server, without pages of "
        "files; on a GPU the peak of the framework's allocator",
        absent="the kernel does not report the peak of a process, the framework does not report that of its allocator, "
        "or an older program measured it",
        absent_in=OF_MANY_CALLS,
        on_cpu="step_peak_bytes",
        on_gpu="peak_bytes",
        floor=2.0**20,
        resolution=2.0**15,
    ),
    Metric(
        name="first-call",
        title="first call",
        unit="seconds",
        worse="slower",
        better="faster",
        noun="in the first call",
        margin=0.05,
        method="the first call of a program after it is built, in each process, while no other process of the run"
        " computes",
        absent="an older program measured it",
        on_cpu="first_call_seconds",
        on_gpu="first_call_seconds",
        resolution=1e-6,
    ),
    Metric(
        name="p95",
        title="95th percentile of the calls",
        unit="seconds",
        worse="slower",
        better="faster",
        noun="at the 95th percentile",
        margin=0.05,
        method="the time that 95 % of the calls of a round do not exceed",
        absent="a round has fewer than 20 calls, or its samples are of several calls",
        absent_in=OF_MANY_CALLS,
        quantile=0.95,
        resolution=1e-7,
    ),
    Metric(
        name="import",
        title="import of the framework",
        unit="seconds",
        worse="slower",
        better="faster",
        noun="to import",
        margin=0.05,
        method="the processor time of the import of the framework, in each server; all servers of a round import at the"
        " same time",
        absent="an older program measured it",
        scope="environment",
        on_cpu="import_cpu_seconds",
        on_gpu="import_cpu_seconds",
        floor=0.01,
        resolution=1e-4,
        first_differs=True,
    ),
    Metric(
        name="size",
        title="installed size",
        unit="bytes",
        worse="more",
        better="less",
        noun="on disk",
        margin=0.02,
        method="the size of all files in the folders of packages of an environment",
        absent="an older program measured it, or the folders cannot be read",
        scope="environment",
        on_cpu="installed_bytes",
        on_gpu="installed_bytes",
        on_disk=True,
        resolution=1.0,
        exact=True,
    ),
    Metric(
        name="energy",
        title="energy of a step",
        unit="joules",
        worse="more",
        better="less",
        noun="energy",
        margin=0.03,
        method="the energy that the GPU takes for a step, without what it takes when idle",
        absent="CPUs and some GPUs do not report it",
        absent_in={**OF_MANY_CALLS, "published": "it is not read for the calls of an original program"},
        on_gpu="joules_per_step",
        resolution=1e-6,
    ),
    Metric(
        name="instructions",
        title="instructions of a call",
        unit="instructions",
        worse="more",
        better="fewer",
        noun="instructions",
        margin=0.02,
        method="the processor counts those of all threads of the process in the calls of a round, without the kernel's",
        absent="only CPUs count them, and most virtual machines and container engines do not allow it; for virtual"
        " environments the setting kernel.perf_event_paranoid must be 2 or less",
        absent_in={**OF_MANY_CALLS, "published": "they are not counted for the calls of an original program"},
        on_cpu="instructions_per_call",
        resolution=1.0,
    ),
)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
OTHERS: tuple[Metric, ...] = tuple(metric for metric in METRICS if metric.name != TIME)
"""All but time, in the order in which they are shown."""
WORSE: frozenset[str] = frozenset(metric.worse for metric in METRICS)
"""The verdicts of rows whose other side is worse."""
BETTER: frozenset[str] = CHANGES - WORSE
NOT_WORSE: frozenset[str] = BETTER | {"same"}
"""The verdicts of rows that are shown not to be worse."""
BY_CONDITION: Mapping[str, Metric] = {metric.word: metric for metric in METRICS}
"""Word of a condition of ``--fail-on`` -> its metric."""
ALL = "all"


def margin_of(metric: str, of_time: float) -> float:
    """Return the relative change of a metric that counts as none, given that of times."""
    return of_time if metric == TIME else BY_NAME[metric].margin


def named(name: str) -> Metric:
    """Return the metric of a name that somebody typed.

    Raises:
        UsageError: there is no such metric.
    """
    _refuse_unknown(name, tuple(BY_NAME))
    return BY_NAME[name]


def parse_metrics(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics of ``--metric``, each once: names with commas between them, or ``all``.

    Raises:
        UsageError: there is no such metric.

    >>> parse_metrics(["memory,size"])
    ('memory', 'size')
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        _refuse_unknown(name, (*BY_NAME, ALL))
    return tuple(BY_NAME) if ALL in names else tuple(dict.fromkeys(names))


def _refuse_unknown(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise UsageError(Problem(f"--metric: there is no metric {name!r:.100}", hint=hint))
