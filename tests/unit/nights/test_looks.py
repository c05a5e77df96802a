"""What later nights read of a stored night, and the note about medians of nights."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from runner.analysis.comparison_model import Row
from runner.nights.looks import EarlierNights, Look, earlier_nights, is_over, nights_waiting
from runner.nights.night import Night, NightChange, State
from runner.nights.night_files import nights_folder, write_night
from runner.watch.nightly.anchors import drift_notes
from runner.watch.nightly.night_record import night_change
from tests.support.fake_runs import cell

ROW = Row(base=cell(), other=cell(), ratio=1.05, ratio_low=1.01, ratio_high=1.09, rounds=9, verdict="slower")
GONE = night_change(cell(), before="20260100-000000-ab12", against="anchor", row=ROW, state="environment-gone")


def the_night(run: str, *changes: NightChange, seconds: float = 1.0) -> Night:
    """Return a night of a cell."""
    return Night(
        run=run,
        at="",
        device="cpu",
        device_name="CPU",
        backend="venv",
        measured=1,
        changes=changes,
        seconds={cell().id: seconds},
    )


def test_a_stored_change_is_read_as_a_look(tmp_path: Path) -> None:
    again = replace(ROW, verdict="inconclusive", more_rounds=7)
    options = {"before": GONE.before, "against": "anchor", "digest": "sha256:ab", "confirmed_in": "a"}
    change = night_change(cell(), ROW, state="measured-again", again=again, **options)
    write_night(the_night("b", change), tmp_path)
    write_night(the_night("a", replace(GONE, state="no-time")), tmp_path)
    history = earlier_nights(tmp_path)
    assert history.nights == ("a", "b")
    assert history.of(cell().id, GONE.before) == (
        Look("a", "no-time", device="venv CPU"),
        Look("b", "measured-again", "inconclusive", True, 9, 7, "a", "sha256:ab", 1.05, 1.01, 1.09, "venv CPU"),  # noqa: FBT003 - in their order
    )
    assert history.of(cell().id, "another") == ()
    assert history.seconds == {cell().id: (("a", 1.0), ("b", 1.0))}


def test_a_change_against_an_anchor_does_not_keep_a_baseline_from_moving(tmp_path: Path) -> None:
    write_night(the_night("a", GONE), tmp_path)
    write_night(the_night("b", replace(GONE, against="baseline")), tmp_path)
    assert earlier_nights(tmp_path).open_cells == {"a": frozenset(), "b": frozenset({cell().id})}


def test_nights_of_version_1_confirmed_what_they_found_slower(tmp_path: Path) -> None:
    folder = nights_folder(tmp_path)
    folder.mkdir()
    change = {"cell": cell().id, "before": "run-a", "state": "measured-again", "again": {"verdict": "slower"}}
    (folder / "night.json").write_text(json.dumps({"changes": [change]}))
    (folder / "notes.json").write_text('{"changes": [{"cell": "a"}, 3]}')
    (look,) = earlier_nights(tmp_path).of(cell().id, "run-a")
    assert look.confirmed_in == "night"


@pytest.mark.parametrize(
    ("states", "waiting"),
    [((), 0), (("no-time",), 1), (("no-time", "interrupted"), 2), (("no-time", "measured-again", "no-time"), 1)],
)
def test_only_the_last_nights_without_time_count(states: tuple[State, ...], waiting: int) -> None:
    assert nights_waiting([Look("night", state) for state in states]) == waiting


def medians(draw: np.random.Generator, count: int, creep: float) -> list[float]:
    return [float(seconds) for seconds in np.exp(draw.normal(0, 0.01, count) + creep * np.arange(count))]


@pytest.mark.parametrize(("creep", "count"), [(0.005, 1), (0.0, 0)])
def test_a_creep_of_the_medians_is_a_note_where_the_anchor_is_gone(creep: float, count: int) -> None:
    *earlier, tonight = medians(np.random.default_rng(1), 20, creep)
    nights = tuple((f"202601{day:02}-023000-ab12", seconds) for day, seconds in enumerate(earlier, start=1))
    history = EarlierNights((), {}, {}, {cell().id: nights})
    notes = [*drift_notes([GONE], {cell().id: tonight}, history, 0.02)]
    assert len(notes) == count
    assert all("the medians of 20 nights are " in note and " slower since 2026-01-" in note for note in notes)
    in_turns = replace(GONE, state="measured-again")
    assert not [*drift_notes([in_turns], {cell().id: tonight}, history, 0.02)]


@pytest.mark.parametrize(
    ("verdict", "ratio_high", "expected"),
    [
        ("same", 1.01, True),
        ("faster", 0.97, True),
        ("slower", 1.2, False),
        ("inconclusive", 1.03, False),
        ("inconclusive", 1.019, True),
        ("inconclusive", None, False),
        ("not-comparable", None, False),
    ],
)
def test_a_slow_down_is_over_where_a_night_could_tell(
    verdict: str, ratio_high: float | None, *, expected: bool
) -> None:
    assert is_over(verdict, ratio_high, 0.02) == expected
