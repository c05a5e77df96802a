"""Sizes of the products, and what the clocks say of them."""

import pytest

from benchmarks.first_day import products
from benchmarks.first_day.products import BLOCK, GRAPH, OURS, SINGLE


@pytest.mark.parametrize("peak", [8.87e12, 19.5e12, 66.9e12, None])
def test_twenty_products_take_5_us_to_5_ms_at_three_quarters_of_the_peak(peak: float | None) -> None:
    sizes = products.sizes(peak)
    rate = products.SHARE * (peak or products.UNKNOWN_PEAK)
    times = [2 * size**3 / rate for size in sizes]
    assert 18 <= len(sizes) <= 20  # neighbours may round to one size
    assert times[0] == pytest.approx(5e-6, rel=0.35)
    assert times[-1] == pytest.approx(5e-3, rel=0.1)
    assert all(size % products.STEP == 0 for size in sizes)


def clocks(**seconds: float) -> dict[str, dict[str, object]]:
    """Return clocks by short names, each with two turns that agree."""
    names = {"ours": OURS, "block": BLOCK, "graph": GRAPH, "single": SINGLE}
    return {names[name]: {"times": [value, value], "note": ""} for name, value in seconds.items()}


@pytest.mark.parametrize(
    ("times", "state", "compared", "host_bound"),
    [
        ({"ours": 10.2e-6, "block": 10e-6, "graph": 10e-6}, "held", GRAPH, False),
        ({"ours": 15e-6, "block": 10e-6, "graph": 10e-6}, "did not hold", GRAPH, False),
        ({"ours": 15e-6, "block": 15.1e-6, "graph": 5e-6}, "held", BLOCK, True),
        ({"ours": 25e-6, "block": 15.1e-6, "graph": 5e-6}, "did not hold", BLOCK, True),
        ({"ours": 10e-6, "block": 30e-6}, "read", BLOCK, False),
    ],
)
def test_ours_agrees_with_the_graph_or_where_the_host_is_slower_with_a_block(
    times: dict[str, float], state: str, compared: str, *, host_bound: bool
) -> None:
    row = products.row(512, clocks(**times), {"batch": 200})
    assert row.state == state
    assert (row.values["compared"], row.values["host_bound"]) == (compared, host_bound)
    assert row.values["batch"] == 200


def test_clocks_whose_turns_differ_are_not_compared() -> None:
    unsteady = clocks(ours=15e-6, graph=10e-6) | {GRAPH: {"times": [9e-6, 10e-6, 14e-6]}}
    row = products.row(512, unsteady, {})
    assert row.state == "not tested"
    assert "50 %" in row.detail


def test_a_product_that_fails_or_has_no_other_clock_says_so() -> None:
    failed = products.row(512, {OURS: {"reason": "oom: no memory"}, **clocks(graph=1e-5)}, {})
    assert (failed.state, failed.detail) == ("did not hold", "ours: oom: no memory")
    alone = products.row(512, clocks(ours=1e-5) | {GRAPH: {"reason": "no CUDA device"}}, {})
    assert (alone.state, alone.values["reasons"]) == ("not tested", {GRAPH: "no CUDA device"})


def test_a_product_is_a_case_of_deepbench() -> None:
    from runner.catalog.cases import CASES

    case = products.case(64)
    assert set(case) == set(next(spec for name, spec in CASES.items() if name.startswith("deepbench-gemm/")))
