"""Tables of figures become runs of the history, and so do results of other programs, by the recipes of the page."""

import json
import pickle
import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runner.catalog.published import figures
from runner.core.errors import RecordError, RunnerError
from runner.history.database import History
from runner.history.entries import CellEntry, RunEntry
from runner.watch.imports import import_files
from runner.watch.imports.figure_table import read_table
from runner.watch.imports.figures import cell_id
from runner.watch.imports.run_folders import stored_entries

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "import.md"
FILES = Path(__file__).parent / "files"
PYTEST, PYPERF = FILES / "pytest-benchmark-5.3.1.json", FILES / "pyperf-2.10.0.json"
ASV = FILES / "asv/bench1/f385d646-existing-py_usr_bin_python3.json"
TORCH = FILES / "torch-2.13.0.json"
TABLE = """cell,seconds,device,source,release,date,low,high
torch-0.4/nn-lstm/asr-lstm/1x320/train/fp32,0.01,P100,a paper,0.4.0,2018-06-01,0.009,0.012
a layer,0.02,P100,a paper,0.4.0,2018-06-01,,
a layer,0.03,V100,a paper,0.4.0,2018-06-01,,
"""
SAMPLES = {
    "tool": "pyperf",
    "device": "AMD EPYC",
    "source": "bench1",
    "date": "2026-11-24",
    "figures": [
        {"cell": "sort", "samples": [[0.02, 0.03, 0.04], [0.01]]},
        {"cell": "join", "seconds": 0.5, "rounds": 3},
    ],
}
ASV_FIGURES = {
    "bench_sort/Sort.time_sorted/size=100.kind=list": (
        8.126499869831605e-07,
        7.839999670977703e-07,
        9.031699119077536e-07,
        14,
    ),
    "bench_sort/Sort.time_sorted/size=100.kind=tuple": (
        8.914874979382148e-07,
        8.014300510694742e-07,
        1.1923050624318423e-06,
        14,
    ),
    "bench_sort/Sort.time_sorted/size=1000.kind=list": (
        4.703707581938943e-06,
        4.582494966598461e-06,
        5.131139932927912e-06,
        14,
    ),
    "bench_sort/Sort.time_sorted/size=1000.kind=tuple": (
        4.7040775280038356e-06,
        4.542304741335103e-06,
        4.849325086979661e-06,
        14,
    ),
    "bench_sort/time_join/_": (1.1871509959746618e-06, 1.1799120038631369e-06, 1.2862100047641441e-06, 14),
}
PYTEST_FIGURES = {
    "test_sort/test_sorted/100": (4.882749908574624e-07, 4.871750024904029e-07, 4.919800085190217e-07, 12),
    "test_sort/test_sorted/1000": (4.3191624990868155e-06, 4.309800006012664e-06, 4.417304990056433e-06, 12),
    "test_sort/test_join/_": (9.729450030135923e-07, 9.023399979923844e-07, 1.0315120016457519e-06, 12),
}
PYPERF_FIGURES = {
    "_/sort_100/_": (4.807037494174437e-07, 4.765725007018771e-07, 2.0260780001990513e-06, 6),
    "_/join-200-strings.ed68fc/_": (2.7169637496626823e-06, 9.190245000354482e-07, 6.827836999946153e-06, 6),
}
TORCH_FIGURES = {
    "matmul/n=16/torch-2.13.0+cpu.threads=1.5517de": (
        2.0379993657115847e-06,
        2.011998731177301e-06,
        2.153999957954512e-06,
        20,
    ),
    "matmul/n=16/torch-2.13.0+cpu.threads=2.5049a7": (3.3393858997442293e-06, None, None, 1),
    "matmul/n=64/torch-2.13.0+cpu.threads=1.5517de": (
        1.5411829990625848e-05,
        6.969950009079186e-06,
        3.8823039976705313e-05,
        10,
    ),
    "matmul/n=64/torch-2.13.0+cpu.threads=2.5049a7": (0.04018765699947835, None, None, 1),
}


def cells(entry: RunEntry) -> dict[str, CellEntry]:
    return {cell.cell: cell for cell in entry.cells}


def table(folder: Path, text: str = TABLE, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def near(expected: Mapping[str, tuple[float | None, ...]]) -> dict[str, object]:
    return {
        name: tuple(value if value is None else pytest.approx(value, rel=1e-12) for value in values)
        for name, values in expected.items()
    }


def run_recipe(heading: str, **names: object) -> None:
    """Run the Python below a heading of the page in the working folder."""
    section = PAGE.read_text("utf-8").partition(f"\n### {heading}\n")[2]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section.partition("\n### ")[0], re.MULTILINE | re.DOTALL)
    exec(compile(code, heading, "exec"), {**names})


def read_figures(path: Path) -> tuple[RunEntry, dict[str, tuple[float, float | None, float | None, int]]]:
    """Return the only run in a table, and cell without its tool -> seconds, ends of the interval, rounds."""
    (entry,) = read_table(path).entries
    return entry, {
        name.removeprefix(f"imported/{entry.backend}/").removesuffix("/time"): (
            *(cell.seconds, cell.seconds_low, cell.seconds_high, cell.rounds),
        )
        for name, cell in cells(entry).items()
    }


def test_the_recipe_for_pyperf_has_an_interval_over_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path, PYPERF.read_text(), "pyperf.json")
    run_recipe("pyperf")
    entry, measured = read_figures(tmp_path / "table.json")
    assert measured == near(PYPERF_FIGURES)
    assert (entry.series_device, entry.host, entry.at) == (
        "pyperf AMD EPYC of bench1",
        "bench1",
        "2026-11-24T14:22:34Z",
    )
    assert {cell.release for cell in entry.cells} == {"3.11.7"}


def test_the_recipe_for_pyperf_leaves_bytes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(PYPERF.read_text())
    document["benchmarks"][0]["metadata"]["unit"] = "byte"
    table(tmp_path, json.dumps(document), "pyperf.json")
    run_recipe("pyperf")
    assert list(read_figures(tmp_path / "table.json")[1]) == ["_/join-200-strings.ed68fc/_"]


def test_the_recipe_for_pytest_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path, PYTEST.read_text(), "benchmark.json")
    run_recipe("pytest-benchmark")
    entry, measured = read_figures(tmp_path / "table.json")
    assert measured == near(PYTEST_FIGURES)
    assert (entry.series_device, entry.at) == ("pytest-benchmark AMD EPYC of bench1", "2026-11-24T14:00:40Z")
    assert {cell.release for cell in entry.cells} == {"fc9a6eca7b"}
    document = json.loads(PYTEST.read_text())
    for benchmark in document["benchmarks"]:
        del benchmark["stats"]["data"]
    table(tmp_path, json.dumps(document), "benchmark.json")
    run_recipe("pytest-benchmark")
    without = {name: (seconds, None, None, 12) for name, (seconds, *_) in PYTEST_FIGURES.items()}
    assert read_figures(tmp_path / "table.json")[1] == without


def test_the_recipe_for_asv_has_what_is_in_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "bench1"
    folder.mkdir(parents=True)
    for file in FILES.glob("asv/*/*.json"):
        table(folder, file.read_text(), file.name)
    table(folder.parent, (FILES / "asv/benchmarks.json").read_text(), "benchmarks.json")
    run_recipe("asv")
    (made,) = tmp_path.glob("*.table.json")
    entry, measured = read_figures(made)
    assert measured == near(ASV_FIGURES)
    assert (entry.series_device, entry.at) == ("asv unknown device of bench1", "2026-11-24T14:10:52Z")
    assert {cell.release for cell in entry.cells} == {"f385d64694"}
    document = json.loads(ASV.read_text())
    position = document["result_columns"].index("samples")
    for values in document["results"].values():
        del values[position:]
    table(folder, json.dumps(document).replace("8.126499869831605e-07", "NaN"), ASV.name)
    run_recipe("asv")
    without = read_figures(made)[1]
    assert {name: seconds for name, (seconds, *_) in without.items()} == {
        name: seconds for name, (seconds, *_) in ASV_FIGURES.items() if "size=100.kind=list" not in name
    }
    assert {(low, rounds) for _, low, _, rounds in without.values()} == {(None, 14)}


def test_the_recipe_for_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(TORCH.read_text())
    torch = ModuleType("torch")
    vars(torch).update(__version__=document["torch"], cuda=SimpleNamespace(get_device_name=lambda: "H100"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    measurements = [SimpleNamespace(task_spec=SimpleNamespace(**each), **each) for each in document["measurements"]]
    run_recipe("torch.utils.benchmark", measurements=measurements)
    entry, measured = read_figures(tmp_path / "table.json")
    assert measured == near(TORCH_FIGURES)
    assert entry.device_name.startswith("H100 of ")
    assert {cell.release for cell in entry.cells} == {"2.13.0+cpu"}


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        *((PYTEST, "pytest-benchmark"), (PYPERF, "pyperf"), (ASV, "asv"), (TORCH, "torch.utils.benchmark")),
        *((FILES / "asv", "asv"), (FILES / "asv" / "bench1", "asv")),
    ],
)
def test_results_of_another_program_are_sent_to_the_page(path: Path, tool: str, tmp_path: Path) -> None:
    imported = import_files([str(path)], tmp_path / "reports", 0.02)
    assert [problem.message for problem in imported.failures] == [
        f"{path} was not imported: it holds results of {tool}"
    ]
    assert "docs/how-to/import.md" in (imported.failures[0].hint or "")
    assert f"\n### {tool}\n" in PAGE.read_text("utf-8")


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    path = tmp_path / "measurements.pkl"
    path.write_bytes(pickle.dumps([1.0]))
    with pytest.raises(RecordError, match="it holds a pickle"):
        read_table(path)


def test_samples_are_a_median_and_an_interval_over_processes(tmp_path: Path) -> None:
    document = {**SAMPLES, "figures": [{"cell": "sort", "samples": [[each, 1.0, each] for each in (3, 1, 2, 5, 4, 6)]}]}
    (entry,) = read_table(table(tmp_path, json.dumps(document), "table.json")).entries
    (cell,) = entry.cells
    assert cell.seconds == median([1, 2, 3, 4, 5, 6])
    assert (cell.seconds_low, cell.seconds_high) == pytest.approx((1, 6))
    assert cell.rounds == 6


def test_rows_of_a_table_are_runs_by_source_and_device(tmp_path: Path) -> None:
    first, second = read_table(table(tmp_path)).entries
    assert (first.device_name, second.device_name) == ("P100 of a paper", "V100 of a paper")
    assert first.at == "2018-06-01T00:00:00Z"
    known, named = first.cells
    assert known.cell == "imported/torch-0.4+nn-lstm/asr-lstm/1x320/train/fp32"
    assert (known.seconds, known.seconds_low, known.seconds_high) == (0.01, 0.009, 0.012)
    assert named.cell == cell_id("table", "a paper", "a layer")
    assert named.seconds_low is None


def test_a_table_as_json_is_the_same(tmp_path: Path) -> None:
    row = {"cell": "a layer", "seconds": 0.02, "device": "P100", "source": "a paper", "date": "2018-06-01"}
    path = table(tmp_path, json.dumps({"figures": [row]}), "table.json")
    (entry,) = read_table(path).entries
    assert entry.cells[0].cell == cell_id("table", "a paper", "a layer")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seconds", "ms", "times are in ms"),
        ("source", "origin", "no column source"),
        ("0.02,", "fast,", "'fast' is no number"),
        ("0.02,", "-1,", "no time of a step"),
        ("0.02,", "nan,", "no time of a step"),
        ("0.012", "0.001", "ends of an interval"),
        ("0.009,", ",", "ends of an interval"),
        ("2018-06-01", "June", "no date and time"),
        ("V100", "P100", "twice"),
        ("a layer,0.02", ",0.02", "cell is empty"),
        ("a layer,0.02", '"a layer,0.02', "CSV"),
    ],
)
def test_a_mistake_in_a_table_is_a_sentence_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(RecordError) as caught:
        read_table(table(tmp_path, TABLE.replace(old, new)))
    assert words in str(caught.value)
    assert "table.csv" in str(caught.value)
    if "0.02," in old:
        assert "table.csv:3:1" in str(caught.value)


def test_a_damaged_file_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    draw = random.Random("damage")
    content = json.dumps(SAMPLES).encode()
    target = tmp_path / "damaged.json"
    failures = 0
    for _ in range(300):
        target.write_bytes(_damaged(content, draw))
        try:
            entries = read_table(target).entries
        except RunnerError:
            failures += 1
        else:
            assert all(0 < cell.seconds < 1e10 for entry in entries for cell in entry.cells)
    assert failures > 100


def _damaged(content: bytes, draw: random.Random) -> bytes:
    """Return a file with a part cut, changed bytes, or a value of another type."""
    kind = draw.randrange(4)
    if kind == 0:
        return content[: draw.randrange(len(content))]
    if kind == 1:
        letters = bytearray(content)
        for _ in range(draw.randrange(1, 6)):
            letters[draw.randrange(len(letters))] = draw.randrange(256)
        return bytes(letters)
    document = json.loads(content)
    _replace(document, draw)
    return json.dumps(document).encode()


def _replace(document: Any, draw: random.Random) -> None:
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        if not keys:
            return
        key = draw.choice(keys)
        if not isinstance(document[key], (dict, list)) or draw.random() < 0.3:
            values: list[Any] = [
                None,
                -1,
                0,
                1e400,
                "",
                "x" * 5000,
                [],
                {},
                [[]],
                {"a": None},
                True,
                2**70,
                "\u202e\x1b[31m",
                [[[1]]],
            ]
            document[key] = draw.choice(values)
            return
        document = document[key]


def test_names_become_parts_of_an_id_and_never_the_same_one() -> None:
    names = ["a/b", "a b", "a-b", "a,b", "", "..", "../..", "\x1b[31m", "ä" * 5000]
    ids = [cell_id("tool", "suite", name) for name in names]
    assert len(set(ids)) == len(names)
    assert all(name.count("/") == 5 and name.isascii() and len(name) < 300 for name in ids)


def test_an_import_enters_once_and_survives_a_rebuild(tmp_path: Path) -> None:
    names = [str(table(tmp_path)), str(table(tmp_path, json.dumps(SAMPLES), "table.json"))]
    reports = tmp_path / "reports"
    first = import_files(names, reports, 0.02)
    assert (len(first.runs), len(first.failures)) == (3, 0)
    assert all(is_new for _, _, is_new in first.runs)
    assert not any(is_new for _, _, is_new in import_files(names, reports, 0.02).runs)
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        cell = "imported/pyperf/_/sort/_/time"
        (point,) = history.series(cell)
        assert (point.kind, point.device, point.host) == ("import", "pyperf AMD EPYC of bench1", "bench1")
        assert len(history.runs()) == 3
    assert {entry.run for entry in stored_entries(reports, 0.02)} == {entry.run for _, entry, _ in first.runs}
    assert sorted(stored_entries(reports, 0.02), key=lambda each: each.run) == sorted(
        (entry for _, entry, _ in first.runs), key=lambda each: each.run
    )


@pytest.mark.parametrize("empty", ["device", "source", "cell", "seconds"])
def test_an_empty_column_does_not_keep_other_files_out(tmp_path: Path, empty: str) -> None:
    row = {"cell": "sort", "seconds": "1e-6", "device": "AMD EPYC", "source": "bench1", "date": "2026-11-24"}
    names = []
    for name, values in (("bad", {**row, empty: ""}), ("good", row)):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"{','.join(values)}\n{','.join(values.values())}\n")
        names.append(str(path))
    result = import_files(names, tmp_path / "reports", 0.02)
    assert [(path, len(entry.cells)) for path, entry, _ in result.runs] == [(names[1], 1)]
    assert f"{empty} is empty" in result.failures[0].message


def test_figures_that_an_earlier_version_imported_are_still_read(tmp_path: Path) -> None:
    cell = {"cell": "imported/pyperf/_/sort/_/time", "release": "3.11.7", "seconds": 1e-6, "rounds": 6}
    run = {
        "run": "20261124-142234-fb1f6426",
        "at": "2026-11-24T14:22:34Z",
        "kind": "import",
        "device": "import",
        "device_name": "AMD EPYC of bench1",
        "backend": "pyperf",
        "host": "bench1",
        "harness": "pyperf 2.10.0",
        "source": "pyperf.json",
        "cells": [cell],
    }
    folder = tmp_path / "imports" / "figures"
    folder.mkdir(parents=True)
    table(folder, json.dumps({"version": 1, "run": run}), f"{run['run']}.json")
    (entry,) = stored_entries(tmp_path, 0.02)
    assert (entry.harness, entry.cells[0].seconds) == ("pyperf 2.10.0", 1e-6)


def test_a_file_that_cannot_be_read_keeps_no_other_out(tmp_path: Path) -> None:
    imported = import_files([str(tmp_path / "no"), str(table(tmp_path))], tmp_path / "reports", 0.02)
    assert (len(imported.runs), len(imported.failures)) == (2, 1)
    assert "no cannot be read" in imported.failures[0].message


def test_published_figures_are_of_their_device_and_source(tmp_path: Path) -> None:
    imported = import_files(["published:braun2018"], tmp_path, 0.02)
    count = sum(figure.source == "braun2018" for figure in figures())
    assert sum(len(entry.cells) for _, entry, _ in imported.runs) == count
    assert {entry.host for _, entry, _ in imported.runs} == {"braun2018"}
    assert all(cell.seconds_low is None for _, entry, _ in imported.runs for cell in entry.cells)
