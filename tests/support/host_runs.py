"""Runs of several hosts with known content: kinds of devices, several boards of a kind, and what each measured."""

import random
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any

from runner.analysis.boards import Board
from runner.core.model import Cell, Record
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make, times

H100, RTX = "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"
GPU_1 = Board(H100, "gpu-1", "GPU-8c1f2a90-3b1e-4f6a-9d2c-0a1b2c3d4e5f")
GPU_2 = Board(H100, "gpu-2", "GPU-51d07e3b-77aa-4c0e-8a4b-9f8e7d6c5b4a")
DESK = Board(RTX, "desk-3", "GPU-e49b6c17-0f2d-4d8b-b6a1-1234567890ab")
CPU_A, CPU_B = Board("AMD EPYC 7B13", "node-a"), Board("Intel Xeon 8480", "node-b")


def facts(board: Board, **changes: object) -> dict[str, Any]:
    """Return the facts that a record of a board has."""
    device = board.device_name if board.uuid else "cpu"
    known = {"device": device, "device_name": board.device_name, "host": board.host, "device_uuid": board.uuid or None}
    driver = {H100: "580.65.06", RTX: "570.86.10"}.get(board.device_name)
    return {**known, "driver": driver, **changes}


def records(of: Cell, medians: Sequence[float], board: Board, *, first: int = 0, **changes: object) -> list[Record]:
    """Return good records of a cell on a board, with the given median in each round from ``first`` on."""
    return [
        good(of, number, times(median), **facts(board, server=f"{of.environment}@{board.host}#{number}", **changes))
        for number, median in enumerate(medians, first)
    ]


def pair(case: str, board: Board, ratio: float) -> list[Record]:
    """Return three rounds of one case, in which torch-2.x takes ``ratio`` times as long as torch-1.0."""
    noise = (1.0, 1.002, 0.998)
    base = records(cell("torch-1.0", case=case), [0.01] * 3, board)
    return base + records(cell("torch-2.x", case=case), [0.01 * ratio * each for each in noise], board)


def realistic(reports: Path, boards: Mapping[Board, Iterable[tuple[str, str]]], *, seed: int = 3) -> Run:
    """Make a run of two releases on several boards: two APIs and two phases of each case, with noise.

    Args:
        reports: the folder of the reports.
        boards: board -> (workload, case) that it measured.
        seed: of the noise.
    """
    draw = random.Random(seed)
    speed = {"lstm-cell-basic": (1.0, 0.62), "nn-lstm": (0.4, 0.31)}
    made = []
    for board, cases in boards.items():
        of_board = 1.0 if board.device_name == H100 else 1.9
        for workload, case in cases:
            size = 0.0011 * exp(draw.gauss(0, 0.8))
            gain = exp(draw.gauss(0, 0.25))
            for phase, share in (("forward", 0.35), ("train", 1.0)):
                for slug, of_release in speed.items():
                    for name, factor in zip(("torch-1.12", "torch-2.x"), of_release, strict=True):
                        of = cell(name, slug, workload=workload, case=case, phase=phase)
                        gained = factor * (gain if name == "torch-2.x" else 1.0)
                        medians = [size * share * of_board * gained * exp(draw.gauss(0, 0.012)) for _ in range(5)]
                        made += records(of, medians, board)
    return make(reports, made, host="head")
