"""The pairs of a page: newest releases first, averages and counts of their rows, and other backends said so."""

import pytest

from runner.analysis.analyse import Analysis, analyse_run
from runner.report.fastest import alone_by_release, measured_alone, races
from runner.report.page import Page, arrange
from runner.report.pairs import Pair, pairs
from tests.support.quick_run import quick


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analyse_run(quick(tmp_path_factory.mktemp("reports")))


@pytest.fixture(scope="module")
def page(analysis: Analysis) -> Page:
    return arrange(analysis)


@pytest.fixture(scope="module")
def of_page(page: Page) -> list[Pair]:
    return pairs(page.rows, page.answer, page.releases)


def test_the_newest_releases_come_first(of_page: list[Pair]) -> None:
    assert [pair.title for pair in of_page] == [
        "PyTorch 1.0.0 → 2.13.0",
        "TensorFlow 1.8.0 → 2.21.0",
        "Keras 2.1.6 on TensorFlow 1.8.0 → 3.15.1 on TensorFlow 2.21.0",
        "PyTorch 1.0.0 → 1.12.1",
        "TensorFlow 1.8.0 → 1.15.5",
        "Keras 2.1.6 on TensorFlow 1.8.0 → 2.1.6 on Theano 1.0.1",
    ]
    assert [len(pair.rows) for pair in of_page] == [10, 9, 4, 2, 2, 1]


def test_rows_are_slower_first_and_have_distinct_labels(of_page: list[Pair]) -> None:
    for pair in of_page:
        ratios = [each.row.ratio or 0.0 for each in pair.rows]
        assert ratios == sorted(ratios, reverse=True)
        assert len({each.label for each in pair.rows}) == len(pair.rows)
    assert of_page[0].rows[0].label == "Matrix product, 3072x1024 by 1024x2 · matmul · forward"


def test_a_pair_of_one_test_has_no_average_and_another_backend_is_no_release(of_page: list[Pair]) -> None:
    *others, theano = of_page
    assert theano.average == ""
    assert theano.note == "the same release on another backend"
    assert all(pair.average for pair in others)
    assert [pair.note for pair in others] == [""] * 5


def test_each_framework_is_once_in_a_race_the_fastest_first(page: Page) -> None:
    for race in races(page.cases, page.releases):
        frameworks = [page.releases[each.environment].framework for each in race.contenders]
        assert len(frameworks) == len(set(frameworks)) >= 2
        factors = [each.factor for each in race.contenders]
        assert factors == sorted(factors)
        assert factors[0] == 1.0


def test_tests_without_a_comparison_are_listed_without_controls(page: Page) -> None:
    known = {cell for each in page.rows for cell in each.row.cell_ids}
    alone = measured_alone(page.cases, known, page.releases)
    assert alone_by_release(alone) == "6 of JAX 0.10.2, 3 of PyTorch 2.13.0, 1 of Theano 0.8.2"
    assert not any("@" in each.cell for each in alone)
