"""Files that the real tools wrote become runs of the history; damaged and foreign ones become sentences."""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from runner.catalog.published import figures
from runner.core.errors import RecordError, RunnerError
from runner.history.database import History
from runner.history.entries import CellEntry, RunEntry
from runner.watch.imports import asv, format_of, import_files, pyperf, pytest_benchmark, tables, torch_benchmark
from runner.watch.imports.figures import Read, cell_id
from runner.watch.imports.stored import stored_entries

FILES = Path(__file__).parent / "files"
PYTEST, PYPERF = FILES / "pytest-benchmark-5.3.1.json", FILES / "pyperf-2.10.0.json"
ASV = FILES / "asv/bench1/f385d646-existing-py_usr_bin_python3.json"
TORCH = FILES / "torch-2.13.0.json"
READERS: dict[Path, Callable[[Path], Read]] = {
    PYTEST: pytest_benchmark.read,
    PYPERF: pyperf.read,
    ASV: asv.read,
    TORCH: torch_benchmark.read,
}
TABLE = """cell,seconds,device,source,release,date,low,high
torch-0.4/nn-lstm/asr-lstm/1x320/train/fp32,0.01,P100,a paper,0.4.0,2018-06-01,0.009,0.012
a layer,0.02,P100,a paper,0.4.0,2018-06-01,,
a layer,0.03,V100,a paper,0.4.0,2018-06-01,,
"""


def cells(entry: RunEntry) -> dict[str, CellEntry]:
    return {cell.cell: cell for cell in entry.cells}


def table(folder: Path, text: str = TABLE, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_pytest_benchmark_is_a_run_with_intervals_of_its_samples() -> None:
    (entry,) = pytest_benchmark.read(PYTEST).entries
    assert (entry.kind, entry.backend, entry.host, entry.device_name) == (
        "import",
        "pytest-benchmark",
        "bench1",
        "AMD EPYC of bench1",
    )
    assert entry.at == "2026-11-24T14:00:40Z"
    cell = cells(entry)["imported/pytest-benchmark/test_sort/test_sorted/100/time"]
    samples = json.loads(PYTEST.read_text())["benchmarks"][0]["stats"]["data"]
    ordered = sorted(samples)
    assert cell.seconds == median(samples)
    assert (cell.seconds_low, cell.seconds_high) == pytest.approx((ordered[2], ordered[9]))  # ranks 3 and 10 of 12
    assert (cell.rounds, cell.release) == (12, "fc9a6eca7b")


def test_without_samples_there_is_no_interval(tmp_path: Path) -> None:
    document = json.loads(PYTEST.read_text())
    for benchmark in document["benchmarks"]:
        del benchmark["stats"]["data"]
    (entry,) = pytest_benchmark.read(table(tmp_path, json.dumps(document), "saved.json")).entries
    assert {(cell.seconds_low, cell.seconds_high) for cell in entry.cells} == {(None, None)}
    assert [cell.rounds for cell in entry.cells] == [12, 12, 12]


def test_the_interval_of_pyperf_is_over_processes() -> None:
    (entry,) = pyperf.read(PYPERF).entries
    runs = json.loads(PYPERF.read_text())["benchmarks"][0]["runs"]
    medians = sorted(median(run["values"]) for run in runs)
    cell = cells(entry)["imported/pyperf/_/sort_100/_/time"]
    assert cell.rounds == len(medians) == 6
    assert (cell.seconds, cell.seconds_low, cell.seconds_high) == pytest.approx(
        (median(medians), medians[0], medians[-1])
    )
    assert (cell.release, entry.host, entry.harness) == ("3.11.7", "bench1", "pyperf 2.10.0")


def test_pyperf_s_bytes_are_no_time(tmp_path: Path) -> None:
    document = json.loads(PYPERF.read_text())
    document["benchmarks"][0]["metadata"]["unit"] = "byte"
    read = pyperf.read(table(tmp_path, json.dumps(document), "suite.json"))
    assert len(read.entries[0].cells) == 1
    assert read.notes == ("sort_100 is left out: its unit is 'byte', not 'second'",)


def test_asv_s_benchmarks_in_seconds_are_read_by_commit_and_parameters() -> None:
    read = asv.read(ASV)
    (entry,) = read.entries
    assert sorted(cells(entry)) == [
        "imported/asv/bench_sort/Sort.time_sorted/size=100.kind=list/time",
        "imported/asv/bench_sort/Sort.time_sorted/size=100.kind=tuple/time",
        "imported/asv/bench_sort/Sort.time_sorted/size=1000.kind=list/time",
        "imported/asv/bench_sort/Sort.time_sorted/size=1000.kind=tuple/time",
        "imported/asv/bench_sort/time_join/_/time",
    ]
    document = json.loads(ASV.read_text())
    stored = document["results"]["bench_sort.Sort.time_sorted"][0]
    measured = [cell.seconds for name, cell in cells(entry).items() if "Sort" in name]
    assert measured == pytest.approx(stored)
    assert {cell.release for cell in entry.cells} == {"f385d64694"}
    assert entry.at == "2026-11-24T14:10:52Z"
    assert len([note for note in read.notes if "its unit is" in note]) == 2


def test_asv_without_samples_has_no_interval_of_95_per_cent(tmp_path: Path) -> None:
    document = json.loads(ASV.read_text())
    position = document["result_columns"].index("samples")
    for values in document["results"].values():
        del values[position:]
    (tmp_path / "m").mkdir()
    path = table(tmp_path / "m", json.dumps(document).replace("8.126499869831605e-07", "NaN"), "results.json")
    table(tmp_path, (FILES / "asv/benchmarks.json").read_text(), "benchmarks.json")
    (entry,) = asv.read(path).entries
    assert {cell.seconds_low for cell in entry.cells} == {None}
    assert len(entry.cells) == 4
    assert {cell.rounds for cell in entry.cells} == {14}


def test_asv_without_its_benchmarks_has_no_units(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no benchmarks\.json with the units"):
        asv.read(table(tmp_path, ASV.read_text(), "results.json"))


def test_measurements_of_torch_are_named_by_their_task() -> None:
    (entry,) = torch_benchmark.read(TORCH).entries
    document = json.loads(TORCH.read_text())
    assert len(entry.cells) == len(document["measurements"]) == 4
    cell = cells(entry)[cell_id("torch-benchmark", "matmul", "n=16", "torch 2.13.0+cpu.threads=1")]
    assert cell.seconds == median(document["measurements"][0]["times"])
    assert cell.release == document["torch"] == "2.13.0+cpu"


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    path = tmp_path / "measurements.pkl"
    path.write_bytes(pickle.dumps([1.0]))
    with pytest.raises(RecordError, match="it is a pickle"):
        format_of(path)


def test_rows_of_a_table_are_runs_by_source_and_device(tmp_path: Path) -> None:
    first, second = tables.read(table(tmp_path)).entries
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
    assert format_of(path) == "table"
    (entry,) = tables.read(path).entries
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
        tables.read(table(tmp_path, TABLE.replace(old, new)))
    assert words in str(caught.value)
    assert "table.csv" in str(caught.value)
    if "0.02," in old:
        assert "table.csv:3:1" in str(caught.value)


@pytest.mark.parametrize("path", [PYTEST, PYPERF, ASV, TORCH], ids=lambda path: str(path.name))
def test_a_damaged_file_is_an_error_and_nothing_else(path: Path, tmp_path: Path) -> None:
    draw = random.Random(path.name)
    content = path.read_bytes()
    table(tmp_path, (FILES / "asv/benchmarks.json").read_text(), "benchmarks.json")
    target = tmp_path / "damaged.json"
    failures = 0
    for _ in range(150):
        target.write_bytes(_damaged(content, draw))
        try:
            entries = READERS[path](target).entries
        except RunnerError:
            failures += 1
        else:
            assert all(0 < cell.seconds < 1e10 for entry in entries for cell in entry.cells)
    assert failures > 20


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
    names = [str(PYTEST), str(PYPERF), str(FILES / "asv"), str(table(tmp_path))]
    reports = tmp_path / "reports"
    first = import_files(names, reports, 0.02)
    assert (len(first.runs), len(first.failures)) == (5, 0)
    assert all(is_new for _, _, is_new in first.runs)
    assert not any(is_new for _, _, is_new in import_files(names, reports, 0.02).runs)
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        cell = "imported/pyperf/_/sort_100/_/time"
        (point,) = history.series(cell)
        assert (point.kind, point.device, point.host) == ("import", "pyperf AMD EPYC of bench1", "bench1")
        assert len(history.runs()) == 5
    assert {entry.run for entry in stored_entries(reports, 0.02)} == {entry.run for _, entry, _ in first.runs}
    assert sorted(stored_entries(reports, 0.02), key=lambda each: each.run) == sorted(
        (entry for _, entry, _ in first.runs), key=lambda each: each.run
    )


def test_a_file_that_cannot_be_read_keeps_no_other_out(tmp_path: Path) -> None:
    imported = import_files([str(tmp_path / "no"), str(PYPERF)], tmp_path / "reports", 0.02)
    assert len(imported.runs) == len(imported.failures) == 1
    assert "no cannot be read" in imported.failures[0].message


def test_published_figures_are_of_their_device_and_source(tmp_path: Path) -> None:
    imported = import_files(["published:braun2018"], tmp_path, 0.02)
    count = sum(figure.source == "braun2018" for figure in figures())
    assert sum(len(entry.cells) for _, entry, _ in imported.runs) == count
    assert {entry.host for _, entry, _ in imported.runs} == {"braun2018"}
    assert all(cell.seconds_low is None for _, entry, _ in imported.runs for cell in entry.cells)
