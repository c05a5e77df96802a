"""What a case costs and how its time is in_published_unit, against numbers worked out by hand."""

import importlib

import pytest

from runner.catalog.cases import (
    CASES,
    FIELDS,
    PUBLISHED,
    WORKLOADS,
    field,
    forward_flops,
    in_published_unit,
    parameter_count,
    product_flops,
    training_bytes,
)
from tests.support.networks import NETWORKS

DEEPBENCH = {"gemm": 248, "conv": 217, "rnn": 125, "sparse": 32, "allreduce": 35}


def test_no_two_cases_share_an_id() -> None:
    modules = [importlib.import_module(f"runner.catalog.cases.{name.replace('-', '_')}") for name in WORKLOADS]
    assert len(CASES) == sum(len(module.CASES) for module in modules)


def test_every_network_has_every_key() -> None:
    assert {frozenset(case) - {"phases", "application"} for case in NETWORKS.values()} == {
        frozenset(NETWORKS["rnn-step/lstm-b32-h128"])
    }


def test_the_published_cases_are_those_of_the_documents() -> None:
    counts: dict[str, int] = {}
    for case_id in PUBLISHED:
        counts[CASES[case_id]["workload"]] = counts.get(CASES[case_id]["workload"], 0) + 1
    deepbench = {f"deepbench-{name}": counts.pop(f"deepbench-{name}") for name in DEEPBENCH}
    assert deepbench == {f"deepbench-{name}": count for name, count in DEEPBENCH.items()}
    assert counts == {"rnn-step": 12, "rnn-sequence": 10, "asr-lstm": 4, "lm-lstm": 4}
    assert [len(PUBLISHED[f"asr-lstm/{name}"]) for name in ("1x320-ce-short", "1x320-ce-long")] == [10, 10]
    assert [len(PUBLISHED[f"asr-lstm/{name}"]) for name in ("4x320-ce-long", "4x320-ctc-long")] == [5, 4]


def test_every_case_is_of_a_field() -> None:
    fields = {name: field(case) for name, case in CASES.items()}
    assert set(fields.values()) == set(FIELDS)
    assert fields["asr-lstm/1x320-ce-short"] == fields["deepbench-gemm/train-001-1760x16x1760-nn"] == "Speech"
    assert fields["deepbench-conv/train-038-56x56x64-n8-k256-1x1"] == "Vision"
    assert fields["deepbench-rnn/server-001-lstm-h512-b1-t25"] == fields["lm-lstm/ptb-large"] == "Language"


def test_flops_of_layers_ways_and_an_output_at_every_step() -> None:
    case = CASES["asr-lstm/4x320-ctc-long"]
    frames = 32 * 1000
    products = 2 * frames * 2 * 1280 * ((123 + 320) + 3 * (640 + 320)) + 2 * frames * 640 * 59
    assert forward_flops(case) == products + 4 * 2 * 25 * frames * 320


def test_a_training_step_has_the_gradients_of_weights_and_of_inputs_that_somebody_wants() -> None:
    speech = CASES["asr-lstm/1x320-ce-short"]
    inputs, recurrent, output = 2 * 6400 * 1280 * 123, 2 * 6400 * 1280 * 320, 2 * 64 * 320 * 10
    assert product_flops(speech, "forward") == inputs + recurrent + output
    assert product_flops(speech, "gradient") == product_flops(speech, "train") == 2 * inputs + 3 * (recurrent + output)
    words = CASES["lm-lstm/ptb-large"]  # its first inputs are embeddings, which are trained
    assert product_flops(words, "train") == 3 * product_flops(words, "forward")
    assert product_flops(words, "forward") == 2 * 700 * (2 * 6000 * 3000 + 1500 * 10_000)


def test_weights_of_a_language_model() -> None:
    layers = 2 * 4 * 1500 * (1500 + 1500 + 1)
    assert parameter_count(CASES["lm-lstm/ptb-large"]) == layers + 10_000 * 1500 + 1500 * 10_000 + 10_000


def test_adam_holds_two_moments_more() -> None:
    case = dict(CASES["asr-lstm/1x320-ce-short"])
    more = training_bytes(case) - training_bytes({**case, "optimizer": "sgd"})
    assert more == 4 * 2 * 571_520


@pytest.mark.parametrize(
    ("case_id", "seconds", "value", "unit"),
    [
        ("rnn-step/lstm-b128-h512", 0.128, 1000.0, "µs/example"),
        ("rnn-sequence/lstm-l3-t200-b128-h512", 0.128, 1000.0, "µs/example"),
        ("asr-lstm/1x320-ce-short", 0.25, 250.0, "ms/batch"),
        ("lm-lstm/ptb-large", 0.7, 1000.0, "words/s"),
        ("lm-lstm/template-2x64", 0.004, 4.0, "ms/batch"),
    ],
)
def test_a_time_in_the_unit_of_its_field(case_id: str, seconds: float, value: float, unit: str) -> None:
    converted, name = in_published_unit(CASES[case_id], seconds)
    assert converted == pytest.approx(value)
    assert name == unit
