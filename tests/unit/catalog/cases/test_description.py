"""The names of cases for people: short, and never the same for two cases of a page."""

import pytest

from runner.catalog.cases import CASES
from runner.catalog.cases.description import case_names


@pytest.mark.parametrize(
    ("case_id", "name"),
    [
        ("rnn-step/lstm-b32-h128", "LSTM, 1 layer of 128"),
        ("asr-lstm/2x64-ctc-small", "Speech model, 2 BiLSTM layers of 64"),
        ("lm-lstm/lm-small", "Language model, 2 LSTM layers of 64"),
        ("deepbench-gemm/train-001-1760x16x1760-nn", "Matrix product, 1760x1760 by 1760x16"),
        ("deepbench-allreduce/train-001-100000-c2", "Sum of 100,000 numbers"),
        ("nanogpt/default", "nanogpt"),
        ("nanogpt/small", "nanogpt, small"),
        ("asr-lstm/my-corpus", "asr-lstm/my-corpus"),
    ],
)
def test_a_case_alone_has_a_short_name(case_id: str, name: str) -> None:
    assert case_names([case_id]) == {case_id: name}


def test_no_two_cases_have_the_same_name() -> None:
    names = case_names(CASES)
    assert set(names) == set(CASES)
    assert len(set(names.values())) == len(CASES)
    assert names["rnn-step/lstm-b32-h128"] == "LSTM, 1 layer of 128, 30 steps, batch 32"
