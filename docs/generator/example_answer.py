# ruff: noqa: INP001  a script's module, not a package's
"""The answer of a kept run, read back from its ``report.md``: the repository keeps the report, not the records."""

import re

from runner.analysis.comparison_model import LEANING, VERDICTS, Row
from runner.analysis.model import ADVICE, Figures, Grade, Reason
from runner.core.model import Cell
from runner.report import wording
from runner.report.answer import Answer, Card, ReleaseChange

SPEEDUP = re.compile(r"([\d.]+)x (faster|slower)")
NO_FIGURES = Figures(
    others_busy=None,
    cpus=0,
    aa_pairs=0,
    aa_differing=0,
    aa_median=None,
    canary=None,
    cells=0,
    serious_cells=0,
    rounds=0,
    comparisons=0,
    half_width=None,
)
"""What the grade was computed from; a terminal does not show it."""


def answer(report: str) -> Answer:
    """Return the answer that a ``report.md`` holds, as far as a terminal shows it."""
    changes = [_change(*fields) for fields in _rows(report, "release")]
    slower = [_slower(*fields) for fields in _rows(report.partition("## Slower")[2], "test")]
    level, reason = (re.findall(rf"- \*\*{name}\*\*: (.*)", report)[0] for name in ("Grade", "Reason"))
    grades = {sentence: name for name, sentence in ADVICE.items()}
    name = grades[level.partition(": ")[2]]
    return Answer(
        headline="",
        cards=tuple(Card(newest=change, between=()) for change in changes),
        slower=tuple(slower),
        grade=Grade(level=name, reasons=(Reason(name, "", reason),), figures=NO_FIGURES),
        undecided=0,
        compared=0,
    )


def _rows(report: str, head: str) -> list[list[str]]:
    """Return the fields of the first table of a page whose first column has a heading."""
    table = report[report.index(f"| {head} |") :].partition("\n\n")[0]
    return [[field.strip().strip("*") for field in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def _change(*fields: str) -> ReleaseChange:
    other, base, change, interval, tests, verdicts, *_ = fields
    low, high = _interval(interval)
    counts = {word: int(count) for count, word in (each.split(" ", 1) for each in verdicts.split(", "))}
    framework, _, version = other.partition(" ")
    return ReleaseChange(
        base=base,
        other=other,
        pair=f"{framework} {base} → {version}" if base[0].isdigit() else f"{base} → {other}",
        environment="",
        ratio=_ratio(change) if SPEEDUP.fullmatch(change) else 1.0,  # no text shows the ratio of an unclear difference
        low=low,
        high=high,
        tests=int(tests),
        workloads=0,
        clear=SPEEDUP.fullmatch(change) is not None,
        noise="",
        words={word: counts[word] for word in wording.WORDS if word in counts},
        rows=(),
    )


def _slower(*fields: str) -> tuple[Row, str, str]:
    test, implementation, releases, _, change, interval, verdict = fields
    (case, phase), (base, other) = test.split(), releases.split(" → ")
    cells = [Cell.parse(f"{side}/{implementation}/{case}/{phase}/fp32") for side in ("base", "other")]
    low, high = _interval(interval)
    return (
        Row(
            base=cells[0],
            other=cells[1],
            ratio=_ratio(change),
            ratio_low=low,
            ratio_high=high,
            verdict=next((each for each in VERDICTS if each == verdict), "inconclusive"),
            code="" if verdict in VERDICTS else LEANING,
        ),
        base,
        other,
    )


def _interval(text: str) -> tuple[float, float]:
    """Return the ends of an interval as ratios: ``1.89x to 2.36x faster``, or ``1.03x slower to 1.55x faster``."""
    direction = text.rpartition(" ")[2]
    first, second = (_ratio(end if " " in end else f"{end} {direction}") for end in text.split(" to "))
    return min(first, second), max(first, second)


def _ratio(text: str) -> float:
    """Return a speed-up as a ratio of times: ``2.11x faster``."""
    match = SPEEDUP.fullmatch(text)
    assert match is not None, text
    return float(match[1]) if match[2] == "slower" else 1 / float(match[1])
