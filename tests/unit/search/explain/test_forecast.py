"""What an explanation would take, as text and as JSON."""

from runner.search.explain.candidates import Candidate
from runner.search.explain.forecast import ExplainForecast


def test_each_candidate_has_a_row_and_the_sum_its_time() -> None:
    switch = Candidate(name="one-arena", kind="switch", change="A=1", sentence="one arena", source="mallopt(3)")
    package = Candidate(name="numpy-1", kind="package", change="numpy 1", source="old", pins=("numpy==1",))
    notes = ("x has no lock",)
    forecast = ExplainForecast(candidates=(switch, package), builds=1, rounds=8, seconds=125.0, notes=notes)
    lines = forecast.text().splitlines()
    assert "A=1, one arena" in lines[1]
    assert lines[2].split() == ["numpy-1", "package", "old", "numpy", "1"]
    assert lines[-2:] == ["note: x has no lock", "2 candidates take at most 1 build, and about 2 min 05 s in 8 rounds"]
    assert forecast.json()["seconds"] == 125.0
    assert forecast.json()["candidates"][1]["pins"] == ("numpy==1",)
