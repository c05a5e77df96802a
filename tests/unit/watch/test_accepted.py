"""What people accepted of a row."""

from runner.analysis.compare.metric_rounds import environment_cell
from runner.core.metrics import BY_NAME
from runner.watch.accepted import accepted_of
from tests.support.fake_runs import cell

ACCEPTED = {cell().id: "run-a", cell(case="2x640").id: "run-b", cell("torch-1.0").id: "run-c"}


def test_a_row_about_a_cell_has_what_was_accepted_of_it() -> None:
    assert accepted_of(cell().id, ACCEPTED) == ("run-a",)
    assert accepted_of(cell(case="3x320").id, ACCEPTED) == ()


def test_a_row_about_an_environment_has_what_was_accepted_of_its_cells() -> None:
    size = BY_NAME["size"]
    assert accepted_of(environment_cell("torch-2.x", size).id, ACCEPTED) == ("run-a", "run-b")
    assert accepted_of(environment_cell("tf-2.x", size).id, ACCEPTED) == ()
