"""The times of a run as JSON for the dashboards that teams have: one function for each format of ``runner export``.

All of them have each measured cell under its id, in milliseconds, but for Bencher, whose ``latency`` is in nanoseconds.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runner.analysis.analyse import Analysis
from runner.catalog.cases import CASES, is_kernel
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.units import MILLISECONDS
from runner.core.version import __version__
from runner.history.entries import CellEntry, RunEntry
from runner.releases.candidates import PACKAGES
from runner.session.run_entry import run_entry
from runner.store.run import Run

NANOSECONDS = 1e9
TRAINING = frozenset({"train", "gradient", "backward-weights", "backward-inputs", "compile", "compile-warm"})
"""The phases of a training step, or of a part of it; all others are inference."""
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
"""Precision -> its name in PyTorch; others are called alike."""


def benchmark_json(analysis: Analysis, run: Run, format: str) -> str:  # noqa: A002  as the option is called
    """Return the times of a run in one of ``BENCHMARK_FORMATS``."""
    return json.dumps(BENCHMARK_FORMATS[format](analysis, run), indent=1, allow_nan=False) + "\n"


def pytorch_benchmark(analysis: Analysis, run: Run) -> list[dict[str, Any]]:
    """Return a record for each cell, as PyTorch's benchmark database takes them.

    https://github.com/pytorch/pytorch/wiki/How-to-integrate-with-PyTorch-OSS-benchmark-database, and the table
    ``oss_ci_benchmark_v3`` of pytorch/test-infra: the values of ``extra_info`` are texts, those of a metric are numbers
    of 32 bits, and ``target_value`` is what the first value should be, here the time of the base.
    """
    entry, rounds = run_entry(analysis, run), analysis.dataset.rounds
    seconds = grouped(zip(rounds["cell"].astype(str).tolist(), rounds["seconds"].tolist(), strict=True))
    medians = {each.cell: each.seconds for each in entry.cells}
    records = []
    for each in entry.cells:
        cell = Cell.parse(each.cell)
        framework = analysis.releases[cell.environment].framework
        device_name, host = (each.board.device_name, each.board.host) if each.board else (entry.device_name, entry.host)
        times = {"benchmark_values": list(map(_milliseconds, seconds[each.cell]))}
        metric: dict[str, Any] = {"name": "latency(ms)", **times, "extra_info": _verdict(each)}
        if each.base in medians:
            metric["target_value"] = _milliseconds(medians[each.base])
        records.append(
            {
                "benchmark": _benchmark(cell, entry, each, device_name),
                "runners": [{"name": host, "type": device_name}],
                "model": {
                    "name": cell.case_id,
                    "type": "micro-benchmark" if _is_kernel(cell) else "model",
                    "backend": cell.implementation,
                    "origins": ["matrix-runner"],
                },
                "dependencies": {PACKAGES.get(framework, (framework,))[0]: {"version": each.release}},
                "metric": metric,
            }
        )
    return records


def _benchmark(cell: Cell, entry: RunEntry, measured: CellEntry, device_name: str) -> dict[str, Any]:
    device = measured.board.device if measured.board else entry.device
    return {
        "name": "matrix-runner",
        "mode": "training" if cell.phase.partition("+")[0] in TRAINING else "inference",
        "dtype": DTYPES.get(cell.precision, cell.precision),
        "extra_info": {
            "device": "cpu" if device == "cpu" else "cuda",
            "arch": device_name,
            "phase": cell.phase,
            "environment": cell.environment,
            "cell": cell.id,
            "run": entry.run,
            "program": f"matrix-runner {__version__}",
        },
    }


def _is_kernel(cell: Cell) -> bool:
    return cell.case_id in CASES and is_kernel(CASES[cell.case_id])


def bencher(analysis: Analysis, run: Run) -> dict[str, dict[str, dict[str, float]]]:
    """Return cell -> measure -> values, the Bencher Metric Format: the median, and the ends of its 95 % interval.

    https://bencher.dev/docs/reference/bencher-metric-format/; the built-in measure ``latency`` is in nanoseconds.
    """

    def values(each: CellEntry) -> Iterator[tuple[str, float]]:
        ends = {"value": each.seconds, "lower_value": each.seconds_low, "upper_value": each.seconds_high}
        return ((name, seconds * NANOSECONDS) for name, seconds in ends.items() if seconds is not None)

    return {each.cell: {"latency": dict(values(each))} for each in run_entry(analysis, run).cells}


def github_action_benchmark(analysis: Analysis, run: Run) -> list[dict[str, Any]]:
    """Return an entry for each cell, as ``tool: customSmallerIsBetter`` of github-action-benchmark takes them.

    https://github.com/benchmark-action/github-action-benchmark: ``range`` and ``extra`` are texts that it shows.
    """
    entry = run_entry(analysis, run)
    entries = []
    for each in entry.cells:
        release = analysis.releases[Cell.parse(each.cell).environment].name
        lines = [release, f"rounds: {each.rounds}", f"device: {entry.device_name}"]
        lines += [f"{name.replace('_', ' ')}: {text}" for name, text in _verdict(each).items()]
        ends = {}
        if each.seconds_low is not None and each.seconds_high is not None:
            ends = {"range": " to ".join(f"{_milliseconds(end):.4g}" for end in (each.seconds_low, each.seconds_high))}
        value = _milliseconds(each.seconds)
        entries.append({"name": each.cell, "unit": "ms", "value": value, **ends, "extra": "\n".join(lines)})
    return entries


def _milliseconds(seconds: float) -> float:
    return seconds * MILLISECONDS.scale


def _verdict(each: CellEntry) -> dict[str, str]:
    """Return the comparison of a cell with its base as texts; empty without one."""
    if not each.base:
        return {}
    values = {"base": each.base, "verdict": each.verdict}
    numbers = {"ratio": each.ratio, "ratio_low": each.ratio_low, "ratio_high": each.ratio_high}
    return {**values, **{name: f"{number:.6g}" for name, number in numbers.items() if number is not None}}


BENCHMARK_FORMATS: Mapping[str, Callable[[Analysis, Run], Any]] = {
    "pytorch-benchmark": pytorch_benchmark,
    "bencher": bencher,
    "github-action-benchmark": github_action_benchmark,
}
"""Name of a format, as ``runner export --format`` takes it -> the function that makes it."""
