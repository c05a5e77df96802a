"""Published figures: complete, in the project's own words, and the times that their printed values say."""

import re
from collections import Counter
from typing import Any

import pytest

from runner.analysis.compare.published_side import published_side
from runner.catalog.cases import CASES, product_flops
from runner.catalog.cases.deepbench_rnn import recurrent_flops
from runner.catalog.published import SOURCES, Figure, figures, figures_by_side, find_source, is_published, select_sides
from runner.core.errors import UsageError
from runner.harness.adapters import implementation

COUNTS = {
    "glample2016": 108,  # 12 cases, 3 libraries, compile, train and forward
    "maximumentropy2016": 40,  # 10 cases, 2 implementations, forward and gradient
    "maximumentropy2016-first": 40,
    "maximumentropy2017": 60,  # and the GRU of cuDNN
    "braun2018": 54,  # 31 bars and 31 bars, of which 8 are in both charts
    "braun2018-raw": 19,
    "braun2018-bars": 40,
    "deepbench2017": 22,  # 3 and 3 in training, 4 in each of the four tables of inference on servers
    "tfcudnnlstm2018": 6,
}
SUMS = {  # of the seconds, to six digits: a figure that changes shows here
    "glample2016": "109.802",
    "maximumentropy2016": "3.59038",
    "maximumentropy2016-first": "6.4286",
    "maximumentropy2017": "4.98936",
    "braun2018": "32.159",
    "braun2018-raw": "9.61983",
    "braun2018-bars": "24.2165",
    "deepbench2017": "2.93212",
    "tfcudnnlstm2018": "0.357718",
}
WORDS = 35 * 20


def figure_of(source_name: str, environment: str, implementation_slug: str, case: str, phase: str) -> Figure:
    key = (source_name, environment, implementation_slug, case, phase)
    (figure,) = (f for f in figures() if (f.source, f.environment, f.implementation, f.case, f.phase) == key)
    return figure


def test_every_figure_of_every_source_is_there() -> None:
    assert Counter(figure.source for figure in figures()) == COUNTS
    assert set(COUNTS) == set(SOURCES)
    for name, total in SUMS.items():
        assert f"{sum(figure.seconds for figure in figures() if figure.source == name):.6g}" == total


@pytest.mark.parametrize(
    ("key", "seconds"),
    [
        # 289.6 us an example, 32 examples
        (("glample2016", "theano-0.8", "theano-scan", "rnn-step/lstm-b32-h128", "train"), 289.6e-6 * 32),
        (("glample2016", "torch7", "seq-lstm", "rnn-step/lstm-b128-h1024", "forward"), 112.4e-6 * 128),
        (("glample2016", "tf-0.8", "basic-lstm-cell", "rnn-step/lstm-b32-h512", "compile"), 3.97),
        (
            ("maximumentropy2016", "theano-0.9", "theano-cudnn", "rnn-sequence/lstm-l3-t200-b128-h1024", "gradient"),
            4719.5e-6 * 128,
        ),
        (
            ("maximumentropy2016", "theano-0.9", "theano-scan", "rnn-sequence/lstm-l1-t30-b32-h128", "forward"),
            89.9e-6 * 32,
        ),
        # milliseconds a batch, as in table 4
        (("braun2018", "torch-0.4", "nn-lstm", "asr-lstm/1x320-ce-short", "train"), 0.011),
        (("braun2018", "torch-0.2", "nn-lstm", "asr-lstm/4x320-ctc-long", "train"), 2.509),
        (("braun2018", "tf-1.8", "lstm-cell", "asr-lstm/4x320-ctc-long", "train"), 3.878),
        (("braun2018", "theano-1.0", "lasagne-lstm-layer", "asr-lstm/1x320-ce-long", "train"), 0.293),
        (("braun2018", "keras-2.1-tf", "keras-lstm", "asr-lstm/1x320-ce-long", "train"), 0.543),
        # words a second, 700 words a step
        (("tfcudnnlstm2018", "tf-1.8", "cudnn-lstm", "lm-lstm/ptb-large", "train"), 700 / 32000),
        (("tfcudnnlstm2018", "torch-0.4", "nn-lstm", "lm-lstm/words-35k", "train"), 0.1),
    ],
)
def test_a_figure_is_what_its_document_says(key: tuple[str, str, str, str, str], seconds: float) -> None:
    assert figure_of(*key).seconds == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("name", SOURCES)
def test_every_time_follows_from_the_printed_value_and_the_case(name: str) -> None:
    for figure in (f for f in figures() if f.source == name):
        value = float(figure.value.replace("k", "e3"))
        batch = CASES[figure.case].get("batch", 1)
        times = {"s": value, "us/example": value * 1e-6 * batch, "ms/batch": value * 1e-3, "words/s": WORDS / value}
        times["ms"] = times["ms/batch"]
        assert figure.seconds == pytest.approx(times[figure.unit], rel=1e-9), figure


def test_every_case_slug_and_phase_is_one_of_this_project() -> None:
    for figure in figures():
        assert figure.case in CASES
        assert figure.phase in {"compile", "forward", "train", "gradient"}
        release = tuple(int(part) for part in re.findall(r"\d+", figure.release)[:3])
        known: Any = implementation(figure.framework, figure.implementation)
        assert figure.kind == known.kind_in(release)
        assert known.concerns(dict(CASES[figure.case]))


def test_every_figure_stands_once_and_says_what_it_was_measured_on() -> None:
    keys = [(f.side, f.implementation, f.case, f.phase) for f in figures()]
    assert len(set(keys)) == len(keys)
    assert all(figure.device and figure.name and figure.release for figure in figures())


def test_a_spread_is_given_by_braun_alone_and_is_small() -> None:
    for figure in figures():
        assert (figure.spread is not None) is figure.source.startswith("braun")
        assert (figure.spread is not None) is bool(SOURCES[figure.source].spread)
        if figure.spread is not None:
            assert 0 < figure.spread < 0.11 * figure.seconds


def test_the_bars_and_the_raw_results_agree_with_the_printed_means() -> None:
    printed = {(f.environment, f.implementation, f.case): f.seconds for f in figures() if f.source == "braun2018"}
    for figure in figures():
        if figure.source in {"braun2018-bars", "braun2018-raw"}:
            mean = printed[figure.environment, figure.implementation, figure.case]
            assert abs(figure.seconds - mean) < max(0.0006, 0.018 * mean)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (("maximumentropy2016", "theano-0.9", "theano-scan", "rnn-sequence/lstm-l1-t30-b32-h128", "forward"), "batch"),
        (
            ("maximumentropy2016", "theano-0.9", "theano-scan", "rnn-sequence/lstm-l3-t30-b128-h512", "gradient"),
            "the last layer alone",
        ),
        (
            ("maximumentropy2017", "theano-0.9", "theano-cudnn", "rnn-sequence/gru-l1-t30-b32-h128", "forward"),
            "no input weights",
        ),
        (("tfcudnnlstm2018", "tf-1.8-2gpus", "basic-lstm-cell", "lm-lstm/ptb-large", "train"), "two GPUs"),
        (("braun2018", "torch-0.2", "nn-lstm", "asr-lstm/4x320-ctc-long", "train"), "packing"),
        (("braun2018", "theano-1.0", "lasagne-lstm-layer", "asr-lstm/1x320-ce-short", "train"), "peepholes"),
        (("glample2016", "torch7", "seq-rnn", "rnn-step/rnn-b32-h128", "train"), "sigmoid"),
    ],
)
def test_a_known_defect_is_noted(key: tuple[str, str, str, str, str], words: str) -> None:
    assert words in figure_of(*key).note


def test_every_source_can_be_looked_up() -> None:
    for entry in SOURCES.values():
        assert entry.citation.startswith(entry.title)
        assert re.fullmatch(
            r"https://(arxiv\.org/abs/\d{4}\.\d{5}|github\.com/\w+/\w+[\w-]*/tree/[0-9a-f]{7}|github\.com/baidu-research/DeepBench)",
            entry.url,
        )
        assert str(entry.year) in entry.citation
    assert find_source("braun2018").year == 2018


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("published:braun2018/torch-0.4", ("torch-0.4",)),
        ("published:braun2018/torch-*", ("torch-0.1", "torch-0.2", "torch-0.3", "torch-0.4")),
        ("published:glample2016", ("theano-0.8", "torch7", "tf-0.8")),
        ("published:braun2018-*/torch-0.4", ("torch-0.4", "torch-0.4")),
    ],
)
def test_a_name_or_a_glob_selects_sides_in_their_order(name: str, expected: tuple[str, ...]) -> None:
    assert is_published(name)
    assert tuple(side.partition("/")[2] for side in select_sides(name)) == expected
    assert set(select_sides(name)) <= set(figures_by_side())


def test_a_source_alone_is_not_its_neighbours() -> None:
    assert {side.partition("/")[0] for side in select_sides("published:braun2018")} == {"published:braun2018"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("published:braun2081", r"unknown published source 'braun2081'\nhint: did you mean 'braun2018'\? there are "),
        (
            "published:braun2018/torch-0.5",
            r"unknown environment 'torch-0\.5' in published braun2018\nhint: did you mean",
        ),
        ("published:", r"unknown published source ''\nhint: there are braun2018, .*, tfcudnnlstm2018"),
    ],
)
def test_an_unknown_name_is_a_usage_error_that_says_what_there_is(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        select_sides(name)


def test_an_unknown_source_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'glample2016'"):
        find_source("glample")


PRINTED = {  # TFLOP/s as DeepBench's tables have them, beside the times
    "deepbench-gemm/train-004-1760x128x1760-nn": 3.42,
    "deepbench-gemm/train-063-7680x64x2560-nn": 4.15,
    "deepbench-gemm/train-013-2560x64x2560-nn": 2.57,
    "deepbench-gemm/server-001-5124x700x2048-nn": 31.94,
    "deepbench-gemm/server-002-35x700x2048-nn": 2.09,
    "deepbench-gemm/server-031-3072x3000x1024-nn": 38.36,
    "deepbench-gemm/server-066-512x6000x2816-nn": 40.71,
    "deepbench-conv/server-028-224x224x3-n1-k64-7x7": 1.64,
    "deepbench-conv/server-079-56x56x256-n1-k128-1x1": 3.43,
    "deepbench-conv/server-105-7x7x512-n2-k2048-1x1": 11.42,
    "deepbench-rnn/server-012-lstm-h1536-b4-t50": 0.55,
    "deepbench-rnn/server-015-lstm-h256-b4-t150": 0.19,
    "deepbench-rnn/server-016-gru-h2816-b1-t1500": 0.20,
    "deepbench-rnn/server-058-gru-h2560-b2-t375": 0.39,
}
OTHERWISE = {  # what the tables count otherwise: the zeros, the forward pass alone, a result's size in fractions
    "deepbench-sparse/server-001-7680x1x2560-0.95": 1.10,
    "deepbench-sparse/server-002-7860x2x2560-0.95": 1.74,
    "deepbench-sparse/server-004-7680x1500x2560-0.95": 1.88,
    "deepbench-sparse/server-019-10752x1x3584-0.90": 0.72,
    "deepbench-rnn/train-035-gru-h2816-b32-t1500": 4.05,
    "deepbench-rnn/train-041-gru-h2048-b32-t375": 3.11,
    "deepbench-rnn/train-053-gru-h1024-b64-t1500": 3.06,
    "deepbench-conv/server-006-341x79x32-n4-k32-10x5": 8.45,
}


def counted(figure: Figure) -> int:
    case = CASES[figure.case]
    return recurrent_flops(case) if case["workload"] == "deepbench-rnn" else product_flops(case, "forward")


def between(figure: Figure, flops: float) -> tuple[float, float]:
    """Return the least and the most TFLOP/s of a time that was rounded to its printed digits."""
    half = 0.5 * 10.0 ** -len(figure.value.partition(".")[2]) * 1e-3
    return flops / (figure.seconds + half) / 1e12, flops / (figure.seconds - half) / 1e12


def test_printed_operations_in_a_second_follow_from_the_times_and_the_exceptions_do_not() -> None:
    of_deepbench = {figure.case: figure for figure in figures() if figure.source == "deepbench2017"}
    assert set(of_deepbench) == {*PRINTED, *OTHERWISE}
    for case, printed in PRINTED.items():
        low, high = between(of_deepbench[case], counted(of_deepbench[case]))
        assert low - 0.005 <= printed <= high + 0.005, case
    for case, printed in OTHERWISE.items():
        low, high = between(of_deepbench[case], counted(of_deepbench[case]))
        assert not low - 0.005 <= printed <= high + 0.005, case


def test_what_no_cell_repeats_has_a_protocol_of_its_own() -> None:
    protocols = {name: figure_of.protocol for name, figure_of in SOURCES.items() if figure_of.protocol != "published"}
    assert protocols == {"deepbench2017": "calls of cuBLAS, cuSPARSE and cuDNN"}
    side = published_side("published:deepbench2017/cuda")
    assert {fact for figure_of in side.measured.values() for fact in figure_of.facts["protocol"]} == set(
        protocols.values()
    )
    precisions = {fact for figure_of in side.measured.values() for fact in figure_of.facts["effective_precision"]}
    assert precisions == {cell.precision for cell in side.measured} == {"fp32", "fp16", "int8"}


def test_the_zeros_of_sparse_products_are_what_the_tables_count() -> None:
    for case, printed in OTHERWISE.items():
        if case.startswith("deepbench-sparse"):
            (figure,) = (figure_of for figure_of in figures() if figure_of.case == case)
            m, n, k, sparsity = (CASES[case][name] for name in ("m", "n", "k", "sparsity"))
            low, high = between(figure, 2 * m * n * k * sparsity)
            assert low - 0.005 <= printed <= high + 0.005, case
