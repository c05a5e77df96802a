# ruff: noqa: INP001  a script's module, not a package's
"""The pictures of the documentation that follow from no measurement: the stages, and the time line of a run."""

from random import Random

from drawing import BLUE, EDGE, INK, LINE, SOFT, arrow, box, document, lines, number, path, text, wrapped

from runner.core.model import Cell
from runner.measure import turns

STAGES = {
    "matrix": "reads and checks the file, and reports every mistake at once",
    "plan": "gives each cell a verdict: run, or skip with a code and a reason; touches nothing",
    "backends": "provide the environments: an image, a virtual environment, or an interpreter that exists already",
    "measure": "keeps all environments alive; each round goes through all cases with a fresh process per cell",
    "store": "keeps one record for each cell and round, however it ended",
    "analysis": "turns run folders into tables, log ratios paired by round, intervals and verdicts",
    "report": "writes HTML, Markdown, CSV, JSON and tables for the terminal",
}
"""Package of each stage -> what it does."""

WIDTH = 520
CASES = {"case A": "#f3d9c4", "case B": "#cfe3f3", "case C": "#dcecd2"}
RELEASES = {"torch-1.0": "#e8854a", "torch-1.12": "#5a9fd4", "torch-2.x": "#3f7d3a"}
WAITS, BUILDS, STARTS = "#eceff3", "#aab4c0", "#d5dae1"
SEED = 11
LANE = 30
PASSES = 4
TURN, WARM_UP, BUILD, CHECK = 16, 24, 58, 46
"""Widths of a turn and of the activities around the turns; not to scale."""


def stages() -> str:
    """Return the stages from the matrix file to the report, from top to bottom."""
    height, gap = 52, 20
    marks = [
        path(f"M{EDGE} {EDGE}h112l12 12v24h-124zM{EDGE + 112} {EDGE}v12h12", INK),
        text(EDGE + 14, EDGE + 24, "matrix.yaml", "name"),
    ]
    top = EDGE + 36
    for name, what in STAGES.items():
        marks.append(arrow(EDGE + 62, top + 2, top + gap - 2))
        top += gap
        middle = top + height / 2 + 5
        marks.append(box(EDGE, top, WIDTH - 2 * EDGE, height, "#f6f7f9", stroke=LINE))
        marks.append(box(EDGE, top, 5, height, BLUE))
        marks.append(text(EDGE + 18, middle, name, "name"))
        shown = wrapped(what, WIDTH - 2 * EDGE - 130)
        marks += lines(EDGE + 122, middle - 9 * (len(shown) - 1), shown, "soft")
        top += height
    title = "The flow of data: " + "; ".join(f"{name} {what}" for name, what in STAGES.items())
    return document(title, WIDTH, top + EDGE, marks)


def time_line() -> str:
    """Return rounds that go through all cases, and a case of one of them, in which cells take turns."""
    draw = Random(SEED)
    rounds, (left, right), bottom = _rounds(draw, 70)
    top = bottom + 74
    marks = [text(EDGE, EDGE + 16, "A run: each round goes through all cases", "title"), *rounds]
    marks.append(path(f"M{left} {bottom}L{EDGE} {top - 36}M{right} {bottom}L{WIDTH - EDGE} {top - 36}", SOFT))
    marks.append(text(EDGE, top - 12, "A case of a round: its cells take turns of 10 ms", "title"))
    case, bottom = _turns(draw, top + 26)
    marks += case
    notes = ("time goes from left to right, not to scale; pale: the process is stopped",)
    marks += lines(EDGE, bottom + 28, notes, "soft")
    title = (
        "The time line of a run. Each round starts fresh servers and goes through all cases, in a new order. In a case,"
        " the cells build side by side, warm up one by one, take turns of 10 ms in an order that is new in each pass,"
        " and are checked side by side."
    )
    return document(title, WIDTH, bottom + 46, marks)


def _rounds(draw: Random, top: int) -> tuple[list[str], tuple[int, int], int]:
    """Return the marks of three rounds, the edges of the case that is shown in detail, and where they end."""
    start, width = EDGE + 68, 106
    marks = []
    for index in range(3):
        y = top + index * (LANE + 10) - 22
        marks.append(text(EDGE, y + 20, f"round {index + 1}"))
        marks.append(box(start, y, 88, LANE, STARTS))
        marks.append(text(start + 44, y + 20, "servers start", "small middle"))
        for position, name in enumerate(draw.sample(list(CASES), len(CASES))):
            x = start + 92 + position * (width + 3)
            marks.append(box(x, y, width, LANE, CASES[name], stroke=SOFT if (index, position) == (2, 1) else ""))
            marks.append(text(x + width / 2, y + 20, name, "middle"))
    detail = start + 92 + width + 3
    return marks, (detail, detail + width), y + LANE


def _turns(draw: Random, top: int) -> tuple[list[str], int]:
    """Return the marks of the cells of a case, a lane for each, and where they end."""
    cells = [Cell.parse(f"{name}/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32") for name in RELEASES]
    lanes = {cell: top + index * (LANE + 6) for index, cell in enumerate(cells)}
    left = EDGE + 86
    warm_up = left + BUILD + 4
    first = warm_up + len(cells) * WARM_UP + 6
    end = first + PASSES * (len(cells) * TURN + 4)
    bottom = top + len(cells) * (LANE + 6) - 6
    marks = []
    for cell, y in lanes.items():
        marks.append(text(EDGE, y + 20, cell.environment))
        marks.append(box(left, y, end + CHECK - left, LANE, WAITS))
        marks += [box(left, y, BUILD, LANE, BUILDS), box(end, y, CHECK, LANE, BUILDS)]
    for index, cell in enumerate(draw.sample(cells, len(cells))):
        marks.append(box(warm_up + index * WARM_UP, lanes[cell], WARM_UP, LANE, _colour(cell), opacity=".55"))
    for index in range(PASSES):
        x = first + index * (len(cells) * TURN + 4)
        for position, cell in enumerate(turns.order(cells, draw)):
            marks.append(box(x + position * TURN, lanes[cell], TURN, LANE, _colour(cell)))
        marks.append(path(f"M{number(x - 2)} {top - 2}V{bottom + 2}", SOFT, stroke_dasharray="3 3"))
    heads = {
        "build": (left + left + BUILD) / 2,
        "warm up": (warm_up + first - 6) / 2,
        "turns, a new order in each pass": (first + end) / 2,
        "check": end + CHECK / 2,
    }
    marks += [text(x, top - 8, head, "small middle") for head, x in heads.items()]
    return marks, bottom


def _colour(cell: Cell) -> str:
    return RELEASES[cell.environment]
