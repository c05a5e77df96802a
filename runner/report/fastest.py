"""The fastest releases of each test across frameworks, and the tests that are compared with nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.analysis.releases import EnvironmentRelease
from runner.catalog.api_names import api_name
from runner.catalog.cases.description import case_names
from runner.core.grouping import grouped
from runner.core.model.cells import is_control
from runner.report import wording
from runner.report.times import Case, Line

MIN_FRAMEWORKS = 2
"""Frameworks that have to run a test, so that the fastest is a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """The fastest release and API of a framework in a test.

    Attributes:
        environment: its id; ``release`` its name, and ``api`` that of its API.
        time: of a step, with its unit.
        factor: its time over that of the fastest; 1 for the fastest. ``behind`` is that in words.
    """

    environment: str
    release: str
    api: str
    time: str
    factor: float
    behind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A test that several frameworks ran: the best of each, the fastest first.

    Attributes:
        label: the case and the phase in plain words; ``test`` the id of the case and the phase.
        device_name: the kind of device, if the run has several; otherwise empty.
    """

    label: str
    test: str
    contenders: tuple[Contender, ...]
    device_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A measured cell that is compared with nothing: its test and API in plain words, its release and its time."""

    label: str
    cell: str
    environment: str
    release: str
    time: str


def races(cases: Iterable[Case], releases: Mapping[str, EnvironmentRelease]) -> list[Race]:
    """Return the tests that several frameworks ran, each with the best of every framework.

    Args:
        cases: the measured times of a run.
        releases: environment -> its release.
    """
    cases = list(cases)
    names = case_names(case.name for case in cases)
    of_frameworks = []
    for case in cases:
        lines = (line for line in case.lines if not is_control(line.environment) and not _is_compiling(line))
        for (phase, precision), of_test in grouped(((line.phase, line.precision), line) for line in lines).items():
            best = _best_of_frameworks(of_test, releases)
            if len(best) >= MIN_FRAMEWORKS:
                label = phase if precision == "fp32" else f"{phase} {precision}"
                of_frameworks.append(
                    Race(
                        label=f"{names[case.name]} · {label}",
                        test=f"{case.name} {label}",
                        contenders=tuple(_contender(line, best[0], releases) for line in best),
                        device_name=case.device_name,
                    )
                )
    return of_frameworks


def measured_alone(
    cases: Iterable[Case], compared: Iterable[str], releases: Mapping[str, EnvironmentRelease]
) -> list[Alone]:
    """Return the measured cells that no comparison has, A/A controls left out.

    Args:
        cases: the measured times of a run.
        compared: the ids of the cells of its comparisons.
        releases: environment -> its release.
    """
    cases, known = list(cases), frozenset(compared)
    names = case_names(case.name for case in cases)
    return [
        Alone(
            label=" · ".join(filter(None, (names[case.name], api_name(line.implementation), line.label))),
            cell=cell,
            environment=line.environment,
            release=_name(line, releases),
            time=line.shown,
        )
        for case in cases
        for line in case.lines
        if not is_control(line.environment) and (cell := line.cell_id(case.name)) not in known
    ]


def alone_by_release(cells: Sequence[Alone]) -> str:
    """Return how many of some cells are of which release, in a line."""
    counts = {name: len(group) for name, group in grouped((each.release, each) for each in cells).items()}
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items(), key=lambda entry: -entry[1]))


def _is_compiling(line: Line) -> bool:
    return line.phase.startswith("compile")


def _best_of_frameworks(lines: Iterable[Line], releases: Mapping[str, EnvironmentRelease]) -> list[Line]:
    """Return the fastest line of each framework, the fastest first."""

    def framework(line: Line) -> str:
        return releases[line.environment].framework if line.environment in releases else line.environment

    groups = grouped((framework(line), line) for line in lines)
    best: Iterator[Line] = (min(group, key=lambda line: line.seconds) for group in groups.values())
    return sorted(best, key=lambda line: line.seconds)


def _contender(line: Line, fastest: Line, releases: Mapping[str, EnvironmentRelease]) -> Contender:
    return Contender(
        environment=line.environment,
        release=_name(line, releases),
        api=api_name(line.implementation),
        time=line.shown,
        factor=line.seconds / fastest.seconds,
        behind="fastest" if line is fastest else wording.speedup(line.seconds / fastest.seconds),
    )


def _name(line: Line, releases: Mapping[str, EnvironmentRelease]) -> str:
    return releases[line.environment].name if line.environment in releases else line.environment
