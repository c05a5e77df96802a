"""Published figures: complete, in the project's own words, and the times that their printed values say."""

import re
from collections import Counter
from typing import Any

import pytest

from runner.errors import UsageError
from runner.harness.adapters import implementation
from runner.published import SOURCES, Figure, figures, is_published, select, sides, source
from runner.workloads import CASES

COUNTS = {
    "glample2016": 108,  # 12 cases, 3 libraries, compile, train and forward
    "maximumentropy2016": 40,  # 10 cases, 2 implementations, forward and gradient
    "maximumentropy2016-first": 40,
    "maximumentropy2017": 60,  # and the GRU of cuDNN
    "braun2018": 54,  # 31 bars and 31 bars, of which 8 are in both charts
    "braun2018-raw": 19,
    "braun2018-bars": 40,
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
    "tfcudnnlstm2018": "0.357718",
}
WORDS = 35 * 20


def one(source_name: str, environment: str, implementation_slug: str, case: str, phase: str) -> Figure:
    key = (source_name, environment, implementation_slug, case, phase)
    (found,) = (f for f in figures() if (f.source, f.environment, f.implementation, f.case, f.phase) == key)
    return found


def test_every_figure_of_every_source_is_there() -> None:
    assert Counter(found.source for found in figures()) == COUNTS
    assert set(COUNTS) == set(SOURCES)
    for name, total in SUMS.items():
        assert f"{sum(found.seconds for found in figures() if found.source == name):.6g}" == total


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
    assert one(*key).seconds == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("name", SOURCES)
def test_every_time_follows_from_the_printed_value_and_the_case(name: str) -> None:
    for found in (f for f in figures() if f.source == name):
        value = float(found.value.replace("k", "e3"))
        batch = CASES[found.case]["batch"]
        times = {"s": value, "us/example": value * 1e-6 * batch, "ms/batch": value * 1e-3, "words/s": WORDS / value}
        assert found.seconds == pytest.approx(times[found.unit], rel=1e-9), found


def test_every_case_slug_and_phase_is_one_of_this_project() -> None:
    for found in figures():
        assert found.case in CASES
        assert found.phase in {"compile", "forward", "train", "gradient"}
        release = tuple(int(part) for part in re.findall(r"\d+", found.release)[:3])
        known: Any = implementation(found.framework, found.implementation)
        assert found.kind == known.kind_in(release)
        assert CASES[found.case]["cell"] in known.cells


def test_every_figure_stands_once_and_says_what_it_was_measured_on() -> None:
    keys = [(f.side, f.implementation, f.case, f.phase) for f in figures()]
    assert len(set(keys)) == len(keys)
    assert all(found.device and found.name and found.release for found in figures())


def test_a_spread_is_given_by_braun_alone_and_is_small() -> None:
    for found in figures():
        assert (found.spread is not None) is found.source.startswith("braun")
        assert (found.spread is not None) is bool(SOURCES[found.source].spread)
        if found.spread is not None:
            assert 0 < found.spread < 0.11 * found.seconds


def test_the_bars_and_the_raw_results_agree_with_the_printed_means() -> None:
    printed = {(f.environment, f.implementation, f.case): f.seconds for f in figures() if f.source == "braun2018"}
    for found in figures():
        if found.source in {"braun2018-bars", "braun2018-raw"}:
            mean = printed[found.environment, found.implementation, found.case]
            assert abs(found.seconds - mean) < max(0.0006, 0.018 * mean)


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
    assert words in one(*key).note


def test_every_source_can_be_looked_up() -> None:
    for found in SOURCES.values():
        assert found.citation.startswith(found.title)
        assert re.fullmatch(
            r"https://(arxiv\.org/abs/\d{4}\.\d{5}|github\.com/\w+/\w+[\w-]*/tree/[0-9a-f]{7})", found.url
        )
        assert str(found.year) in found.citation
    assert source("braun2018").year == 2018


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("published:braun2018/torch-0.4", ("torch-0.4",)),
        ("published:braun2018/torch-*", ("torch-0.1", "torch-0.2", "torch-0.3", "torch-0.4")),
        ("published:glample2016", ("theano-0.8", "torch7", "tf-0.8")),
        ("published:braun2018-*/torch-0.4", ("torch-0.4", "torch-0.4")),
    ],
)
def test_a_name_or_a_glob_selects_sides_in_their_order(name: str, found: tuple[str, ...]) -> None:
    assert is_published(name)
    assert tuple(side.partition("/")[2] for side in select(name)) == found
    assert set(select(name)) <= set(sides())


def test_a_source_alone_is_not_its_neighbours() -> None:
    assert {side.partition("/")[0] for side in select("published:braun2018")} == {"published:braun2018"}


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
        select(name)


def test_an_unknown_source_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'glample2016'"):
        source("glample")
