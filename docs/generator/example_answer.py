# ruff: noqa: INP001  a script's module, not a package's
"""The answer of a kept run, read back from its ``report.md``: the repository keeps the report, not the records."""

import re

from runner.analysis.comparison_model import LEANING, VERDICTS, Row
from runner.analysis.model import ADVICE, Figures, Grade, Reason
from runner.core.model import Cell
from runner.report import wording
from runner.report.answer import Answer
from runner.report.release_change import Card, ReleaseChange

SPEEDUP = re.compile(r"([\d.]+)(x| %) (faster|slower)")
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
    (level,), reasons = (re.findall(rf"- \*\*{name}\*\*: (.*)", report) for name in ("Grade", "Reason"))
    grades = {sentence: name for name, sentence in ADVICE.items()}
    name = grades[level.partition(": ")[2]]
    return Answer(
        headline="",
        cards=tuple(Card(newest=change, between=()) for change in changes),
        slower=tuple(slower),
        grade=Grade(level=name, reasons=tuple(Reason(name, "", each) for each in reasons), figures=NO_FIGURES),
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
    size = change.removeprefix("probably ")
    counts = {word: int(count) for count, word in (each.split(" ", 1) for each in verdicts.split(", "))}
    framework, _, version = other.partition(" ")
    return ReleaseChange(
        base=base,
        other=other,
        pair=f"{framework} {base} → {version}" if base[0].isdigit() else f"{base} → {other}",
        environment="",
        ratio=_ratio(size) if SPEEDUP.fullmatch(size) else 1.0,  # no text shows the ratio of an unclear difference
        low=low,
        high=high,
        tests=int(tests),
        workloads=0,
        clear=SPEEDUP.fullmatch(change) is not None,
        word=next(
            (word for word in wording.PROBABLY if change == f"probably {size}" and size.endswith(word.split()[1])), None
        ),
        noise="",
        words={word: counts[word] for word in wording.WORDS if word in counts},
        rows=(),
    )


def _slower(*fields: str) -> tuple[Row, str, str]:
    test, implementation, releases, _, change, interval, verdict = fields
    (case, phase, *reduced), (base, other) = test.split(), releases.split(" → ")
    (precision,) = reduced or ["fp32"]
    cells = [Cell.parse(f"{side}/{implementation}/{case}/{phase}/{precision}") for side in ("base", "other")]
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
    """Return the ends of an interval as ratios: ``1.89x to 2.36x faster``, or ``3.0 % slower to 1.55x faster``."""
    direction = text.rpartition(" ")[2]
    ends = text.split(" to ")
    first, second = (_ratio(end if end.endswith("er") else f"{end} {direction}") for end in ends)
    return min(first, second), max(first, second)


def _ratio(text: str) -> float:
    """Return a change of speed as a ratio of times: ``2.11x faster``, ``5.2 % slower``."""
    match = SPEEDUP.fullmatch(text)
    assert match is not None, text
    factor = float(match[1]) if match[2] == "x" else 1 + float(match[1]) / 100
    return factor if match[3] == "slower" else 1 / factor
