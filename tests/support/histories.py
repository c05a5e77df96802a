"""Entries of a history with known content."""

from dataclasses import replace
from typing import Any

from runner.history.entries import Acceptance, BoardEntry, CellEntry, ChangeEntry, RunEntry

CELL = "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32"
BASE = "torch-1.0/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32"
DEVICE = "docker H200"


def measured(cell: str = CELL, seconds: float = 0.5, **changes: Any) -> CellEntry:
    """Return a cell of a run, with a ratio to the same cell of torch-1.0."""
    entry = CellEntry(
        cell=cell,
        release="2.9.1",
        digest="sha256:" + "ab" * 32,
        seconds=seconds,
        seconds_low=seconds * 0.99,
        seconds_high=seconds * 1.01,
        rounds=5,
        base="torch-1.0/" + cell.partition("/")[2],
        base_release="1.0.0",
        base_digest="sha256:" + "cd" * 32,
        ratio=seconds,
        ratio_low=seconds * 0.99,
        ratio_high=seconds * 1.01,
        verdict="faster",
    )
    return replace(entry, **changes)


def night(number: int, *cells: CellEntry, **changes: Any) -> RunEntry:
    """Return the run of night ``number`` from 2026-01-01 on, with some cells, or with the usual ones."""
    day = f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}"
    entry = RunEntry(
        run=f"{day.replace('-', '')}-023000-ab12",
        at=f"{day}T02:30:00Z",
        kind="night",
        device="GPU-1",
        device_name="H200",
        backend="docker",
        host="bench",
        driver="580.1",
        harness="9f3c",
        source=f"/srv/reports/runs/{day}",
        cells=cells or (measured(), many_cells(1)[0]),
    )
    return replace(entry, **changes)


H100, RTX = "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"
BOARDS = (
    BoardEntry(device="GPU-1", device_name=H100, host="gpu-1", driver="580.65.06"),
    BoardEntry(device="GPU-2", device_name=H100, host="gpu-2", driver="580.65.06"),
    BoardEntry(device="GPU-3", device_name=RTX, host="desk-3", driver="570.86.10"),
)


def of_hosts(number: int, cells: int = 6) -> RunEntry:
    """Return a run of several hosts: its cells are spread over BOARDS, each night on the next board."""
    spread = tuple(
        replace(each, board=BOARDS[(index + number) % len(BOARDS)]) for index, each in enumerate(many_cells(cells))
    )
    names = {"device": "GPU-1,GPU-2,GPU-3", "device_name": f"{H100} and {RTX}", "host": "gpu-1, gpu-2, desk-3"}
    return night(number, *spread, kind="run", **names)


def many_cells(count: int, seconds: float = 0.5) -> tuple[CellEntry, ...]:
    """Return ``count`` cells of an environment."""
    return tuple(
        measured(f"torch-2.x/nn-lstm/rnn-step/lstm-b32-h{index}/train/fp32", seconds) for index in range(count)
    )


def change(cell: str = CELL, **changes: Any) -> ChangeEntry:
    """Return a change that was not confirmed."""
    entry = ChangeEntry(cell=cell, before="20260101-023000-ab12", state="measured-again", verdict="same", rounds=5)
    return replace(entry, **changes)


def level(run: str, **changes: Any) -> Acceptance:
    """Return an accepted level of CELL."""
    entry = Acceptance(
        cells=(CELL,), device=DEVICE, run=run, at="2026-03-01T08:00:00Z", reason="a new kernel", person="ann"
    )
    return replace(entry, **changes)
