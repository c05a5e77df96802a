"""The JSON of other dashboards: what their readers require, and the numbers of the run in their units."""

import json
from statistics import median
from typing import Any, get_args

import pytest
from jsonschema import validate  # type: ignore[import-untyped]

from runner.analysis.analyse import Analysis, analyse_run
from runner.cli import results
from runner.session.benchmark_formats import BENCHMARK_FORMATS, benchmark_json
from runner.store.run import Run
from tests.support.changed_runs import change_header
from tests.support.fake_runs import realistic

CELL = "torch-2.x/nn-lstm/asr-lstm/1x320-ce-short/train/fp32"
NUMBER = {"type": "number"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
BENCHER = {  # https://bencher.dev/docs/reference/bencher-metric-format/
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {"value": NUMBER, "lower_value": NUMBER, "upper_value": NUMBER},
                    "required": ["value"],
                }
            },
        }
    },
}
GITHUB = {  # https://github.com/benchmark-action/github-action-benchmark/blob/master/src/extract.ts, BenchmarkResult
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "value": NUMBER,
            "unit": {"type": "string"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
        "required": ["name", "value", "unit"],
        "additionalProperties": False,
    },
}
PYTORCH = {  # clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql of pytorch/test-infra
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "benchmark": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "mode": {"enum": ["training", "inference"]},
                    "dtype": {"type": "string"},
                    "extra_info": TEXTS,
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            "runners": {"type": "array", "items": TEXTS},
            "model": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "type": {"type": "string"},
                    "backend": {"type": "string"},
                    "origins": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            "dependencies": {"type": "object", "additionalProperties": TEXTS},
            "metric": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "benchmark_values": {"type": "array", "items": NUMBER, "minItems": 1},
                    "target_value": NUMBER,
                    "extra_info": TEXTS,
                },
                "required": ["name", "benchmark_values"],
                "additionalProperties": False,
            },
        },
        "required": ["benchmark", "model", "metric"],
        "additionalProperties": False,
    },
}
SCHEMAS: dict[str, Any] = {"pytorch-benchmark": PYTORCH, "bencher": BENCHER, "github-action-benchmark": GITHUB}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    stored = realistic(tmp_path_factory.mktemp("reports"))
    change_header(stored, at="2026-11-20T10:44:59Z", device="cpu", device_name="AMD EPYC 7B13")
    return stored


@pytest.fixture(scope="module")
def analysis(run: Run) -> Analysis:
    return analyse_run(run)


def seconds_of(analysis: Analysis) -> list[float]:
    rounds = analysis.dataset.rounds
    return [float(value) for value in rounds[rounds["cell"] == CELL]["seconds"].tolist()]


def document(analysis: Analysis, run: Run, name: str) -> Any:
    return json.loads(benchmark_json(analysis, run, name))


@pytest.mark.parametrize("name", BENCHMARK_FORMATS)
def test_a_format_is_what_its_reader_takes_and_has_every_measured_cell(analysis: Analysis, run: Run, name: str) -> None:
    content = document(analysis, run, name)
    validate(content, SCHEMAS[name])
    cells = {cell for cell in analysis.dataset.rounds["cell"].tolist() if "@" not in cell}
    assert len(content) == len(cells) > 10


def test_the_command_has_each_format() -> None:
    annotation = results.export.__annotations__["format"]
    assert set(get_args(get_args(annotation)[0])) == {"samples", *BENCHMARK_FORMATS}


def test_pytorch_has_the_rounds_in_milliseconds_and_the_base_as_the_target(analysis: Analysis, run: Run) -> None:
    records = {each["benchmark"]["extra_info"]["cell"]: each for each in document(analysis, run, "pytorch-benchmark")}
    record = records[CELL]
    assert record["metric"]["benchmark_values"] == pytest.approx([1e3 * each for each in seconds_of(analysis)])
    base = record["metric"]["extra_info"]["base"]
    assert base == CELL.replace("torch-2.x", "torch-1.0")
    assert record["metric"]["target_value"] == pytest.approx(median(records[base]["metric"]["benchmark_values"]))
    assert record["metric"]["extra_info"]["verdict"] == "faster"
    assert (record["benchmark"]["mode"], record["benchmark"]["dtype"]) == ("training", "float32")
    assert record["dependencies"] == {"torch": {"version": "2.x"}}
    assert records[CELL.replace("train", "forward")]["benchmark"]["mode"] == "inference"
    assert "target_value" not in records[base]["metric"]


def test_bencher_has_nanoseconds_with_an_interval_around_them(analysis: Analysis, run: Run) -> None:
    latency = document(analysis, run, "bencher")[CELL]["latency"]
    assert latency["value"] == pytest.approx(1e9 * median(seconds_of(analysis)))
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]


def test_github_action_benchmark_has_milliseconds_and_the_interval_as_text(analysis: Analysis, run: Run) -> None:
    (entry,) = [each for each in document(analysis, run, "github-action-benchmark") if each["name"] == CELL]
    assert (entry["unit"], entry["value"]) == ("ms", pytest.approx(1e3 * median(seconds_of(analysis))))
    low, high = map(float, entry["range"].split(" to "))
    assert low < entry["value"] < high
    assert entry["extra"].startswith("PyTorch 2.x\nrounds: 5\ndevice: AMD EPYC 7B13\nbase: torch-1.0/")
