"""``runner list presets``: what a preset is for, and how many tests and minutes it takes here."""

from pathlib import Path

from runner.session.listed_presets import preset_rows

ROOT = Path(__file__).parents[3]


def test_every_preset_of_the_shipped_matrix_says_what_it_is_for() -> None:
    rows = {row[0]: row[1:] for row in preset_rows(ROOT / "matrix.yaml")}
    assert list(rows) == ["quick", "smoke", "networks", "standard", "published"]
    assert all(about for *_, about in rows.values())
    assert all(count.endswith(" tests") for count, *_ in rows.values())
