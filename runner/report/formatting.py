"""Text for people: numbers, names and sentences in the form that every output shares.

Callers pass a unit that ``runner/core/units.py`` chose, but for a time that stands alone; a value that is missing
becomes a dash.
"""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.catalog.cases import CASES, in_published_unit, is_network_of_user
from runner.core import units
from runner.core.text import printable
from runner.core.units import TimeUnit

if TYPE_CHECKING:
    from runner.analysis.model import Dataset

PHASES = ("compile", "compile-warm", "forward", "train", "gradient", "backward-inputs", "backward-weights")
DASH = "\N{EN DASH}"
FIRST_FACTS = ("framework", "release", "version", "python", "backend", "digest", "libraries", "cuda", "cudnn", "driver")
STATE_STYLES = {
    "ok": "green",
    "good": "green",
    "warning": "yellow",
    "noisy": "yellow",
    "fair": "yellow",
    "missing": "red",
    "FAILED": "red",
    "poor": "red",
}
"""State, grade or result of a check -> its colour in a terminal; others have none."""


def escape(text: str) -> str:
    """Return text for HTML and SVG, also between quotation marks, every character visible: XML allows no others."""
    return html.escape(printable(text))


def step_time(seconds: float | None, unit: TimeUnit | None = None) -> str:
    """Return the time of a step with its unit, ``1.23 ms``, or a dash."""
    return DASH if seconds is None else units.step_time(seconds, unit)


def without_unit(seconds: float | None, unit: TimeUnit) -> str:
    """Return the time of a step for a column whose head has the unit, ``1.23``, or a dash."""
    return DASH if seconds is None else units.digits(seconds * unit.scale)


def in_workload_unit(case_id: str, phase: str, seconds: float) -> str:
    """Return the time of a step in the unit in which its workload is published, ``301 µs/example``, or a dash.

    That of a user's network is in ms/step.
    """
    if phase.startswith("compile"):
        return DASH
    if is_network_of_user(case_id):
        return f"{units.digits(seconds * 1e3)} ms/step"
    if case_id not in CASES:
        return DASH
    value, name = in_published_unit(CASES[case_id], seconds)
    return f"{units.digits(value)} {name}"


def spread(seconds: float | None, unit: TimeUnit) -> str:
    """Return a standard deviation with two digits, `` ± 0.94``; empty if there is none."""
    return "" if seconds is None else f" ± {seconds * unit.scale:#.2g}".rstrip(".")


def time_with_spread(seconds: float | None, deviation: float | None) -> str:
    """Return the time of a step, its standard deviation if there is one, and its unit: ``31.0 ± 0.94 ms``."""
    unit = units.time_unit([seconds])
    return f"{without_unit(seconds, unit)}{spread(deviation, unit)} {unit.name}" if seconds else DASH


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things: ``1 test``, ``2 tests``; ``plural`` is the noun of several if no s makes it."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def difference(share: float) -> str:
    """Return how far two values are apart: in per cent, and as a factor from twice on.

    >>> difference(0.0123), difference(1623.0)
    ('1.2 %', '1624x')
    """
    return f"{1 + share:.{1 if share < 9 else 0}f}x" if share >= 1 else units.percent(share)


def sentence(text: str) -> str:
    """Return text as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def phase_label(phase: str, precision: str, precisions: Iterable[str]) -> str:
    """Return a phase, with its precision if the case has several."""
    return phase if len(set(precisions)) == 1 else f"{phase} {precision}"


def phase_key(phase: str) -> tuple[int, str]:
    """Return a sort key: phases in the order they happen, ``+published`` after the same phase without."""
    plain = phase.split("+", maxsplit=1)[0]
    return (PHASES.index(plain) if plain in PHASES else len(PHASES), phase)


def environment_order(dataset: "Dataset") -> Mapping[str, int]:
    """Return environment -> its position in the plan."""
    names = dict.fromkeys(planned.cell.environment for planned in dataset.plan)
    return {name: position for position, name in enumerate(names)}


def error(value: float | None) -> str:
    """Return a relative error, ``3.1e-07``, or a dash."""
    return DASH if value is None else f"{value:.1e}"


def few(items: Sequence[str], limit: int = 4) -> str:
    """Return the first items in a line, and how many more there are."""
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")


def date(run: str) -> str:
    """Return the time in a run's id, ``2026-11-20 10:45 UTC``; empty if the id has none."""
    day, _, clock = run[:15].partition("-")
    digits = f"{day}{clock}"
    if not (digits.isascii() and digits.isdigit() and len(day) == 8 and len(clock) == 6):
        return ""
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]} UTC"


def facts(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each fact, the ones people look for first; a nested fact becomes a list in one line."""
    names = [name for name in FIRST_FACTS if name in known] + sorted(set(known) - {*FIRST_FACTS, "version"})
    for name in names:
        value = known[name]
        if value in (None, "", [], {}) or (name == "version" and isinstance(value, int)):
            continue
        yield name.removesuffix("_bytes").replace("_", " "), _text(name, value)


def _text(name: str, value: object) -> str:
    if name.endswith("bytes") and isinstance(value, int):
        return units.memory(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text('', item)}" for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(_text("", item) for item in value)
    return str(value)
