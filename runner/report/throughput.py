"""The throughput of a run: operations and bytes per second, and their shares of a peak."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from runner.analysis.boards import boards_of
from runner.analysis.controls import canary_by_host
from runner.analysis.model import Dataset
from runner.catalog.cases import CASES, deepbench_allreduce, deepbench_rnn, deepbench_sparse, moved_bytes, product_flops
from runner.catalog.hardware.peaks import Peak, peak
from runner.core import units
from runner.core.model.events import CANARY_SIZE as SIZE
from runner.harness.cases import repeats
from runner.report.readings import held_clocks, host_bound_cells, host_times


class Throughput(NamedTuple):
    """The throughput of the cells of a run, by the id of the cell.

    Attributes:
        rates: operations of the matrix products per second, with their share of the peak if that is known. For a single
            operation also the bytes it moves per second, at least; for a recurrent layer of DeepBench also the rate as
            DeepBench's tables count it.
        host_device: see ``host_times``.
        peaks: what the shares refer to, as sentences.
    """

    rates: Mapping[str, str]
    host_device: Mapping[str, str]
    peaks: tuple[str, ...]


class _Peak(NamedTuple):
    """Operations per second that a share refers to, their source as a sentence, and the clock that they are at."""

    operations: float
    sentence: str
    clock: str = ""


def throughput(dataset: Dataset, seconds: Mapping[str, float]) -> Throughput:
    """Return the throughput of cells of a run; ``seconds`` is cell id -> the time of a step, of those cells."""
    columns = ("cell", "workload", "case", "phase", "effective_precision", "device", "device_name", "implementation")
    first = dataset.rounds[dataset.rounds["cell"].isin(seconds)].drop_duplicates("cell")
    canaries, rates, peaks = _canary_peaks(dataset), dict[str, str](), dict[str, None]()
    clocks, host_bound = held_clocks(dataset.rounds), host_bound_cells(dataset.rounds)
    for cell, workload, case, phase, precision, device, name, slug in zip(
        *(first[column].tolist() for column in columns), strict=True
    ):
        case_id = f"{workload}/{case}"
        flops = operations(case_id, phase, seconds[cell], slug)
        board = None if device == "cpu" else peak(name)
        extra = bandwidth(case_id, precision, seconds[cell], slug, board.l2_bytes if board else 0)
        extra = extra or without_inputs(case_id, phase, seconds[cell])
        if not flops:
            rates.update([(cell, extra)] if extra else [])
            continue
        on_cpu = canaries.get(name) if precision == "fp32" else None
        limit = on_cpu if device == "cpu" else _board_peak(board, precision, clocks.get(cell))
        if cell in host_bound:  # a share of the device's peak would be about the host
            limit = None
        if limit and flops > limit.operations:  # then it is no peak
            limit = None
        share = f", {_share(flops / limit.operations)}{limit.clock}" if limit else ""
        rates[cell] = f"{_operation_rate(flops, precision)}{share}" + (f"; {extra}" if extra else "")
        peaks.update({limit.sentence: None} if limit else {})
    return Throughput(rates, host_times(dataset.rounds), tuple(peaks))


def operations(case_id: str, phase: str, seconds: float, slug: str = "") -> float | None:
    """Return the operations of a step's matrix products per second.

    None for a phase that is no step, and if the size is not known: a corpus, or the program of a publication.
    """
    plain, _, published = phase.partition("+")
    if case_id not in CASES or plain.startswith("compile") or (published and not repeats(dict(CASES[case_id]))):
        return None
    if slug == deepbench_sparse.DENSE:
        return deepbench_sparse.forward_flops(CASES[case_id]) / seconds
    return product_flops(CASES[case_id], plain) / seconds


def bandwidth(case_id: str, precision: str, seconds: float, slug: str = "", l2_bytes: int = 0) -> str:
    """Return the bytes that a single operation moves per second, at least, as text; empty for anything else.

    The text says whether the bytes fit into a cache of ``l2_bytes``: then they need not come from memory.

    >>> bandwidth("deepbench-allreduce/train-001-100000-c2", "fp32", 1e-3)
    '0.800 GB/s'
    """
    moved = moved_bytes(CASES[case_id], precision) if case_id in CASES else None
    if slug == deepbench_sparse.DENSE:
        moved = deepbench_sparse.dense_bytes(CASES[case_id])
    if not moved:
        return ""
    in_cache = moved <= l2_bytes and not case_id.startswith(f"{deepbench_allreduce.WORKLOAD}/")
    return units.rate(moved / seconds, "B") + (" (fits in the L2 cache)" if in_cache else "")


def without_inputs(case_id: str, phase: str, seconds: float) -> str:
    """Return the rate of a recurrent layer of DeepBench as DeepBench counts it; empty for anything else.

    DeepBench counts each backward pass like the forward pass, and leaves out the product with the inputs, which
    ``operations`` includes.

    >>> without_inputs("deepbench-rnn/server-001-lstm-h512-b1-t25", "forward", 1e-3)
    '52.4 GFLOP/s without the inputs'
    """
    if not case_id.startswith(f"{deepbench_rnn.WORKLOAD}/"):
        return ""
    flops = (1 if phase.startswith("forward") else 3) * deepbench_rnn.recurrent_flops(CASES[case_id])
    return f"{units.rate(flops / seconds, 'FLOP')} without the inputs"


def _canary_peaks(dataset: Dataset) -> dict[str, _Peak]:
    """Return processor -> the highest rate of the canary there, which stands for its peak; none without a canary."""
    quickest: dict[str, float] = {}
    kinds = {board.host: board.device_name for board in boards_of(dataset.rounds)}
    for host, canary in canary_by_host(dataset).items():
        kind = kinds.get(host, "")
        quickest[kind] = min(quickest.get(kind, math.inf), *(seconds for _, _, seconds in canary))
    peaks = {}
    for kind, seconds in quickest.items():
        flops = 2 * SIZE**3 / seconds
        text = f"{_operation_rate(flops)}, the highest rate of NumPy during the run"
        text += f" on {kind}" if len(quickest) > 1 else ""
        peaks[kind] = _Peak(flops, f"{text}, multiplying {SIZE} x {SIZE} matrices")
    return peaks


def _board_peak(board: Peak | None, precision: str, held_mhz: float | None) -> _Peak | None:
    """Return the peak of a board at the clock that a cell held, or as its maker quotes it where that is not known."""
    if board is None or precision not in board.operations:
        return None
    note = " (unverified)" if precision in board.unverified else ""
    flops, quoted_mhz = board.operations[precision], board.quoted_mhz(precision)
    sentence = f"{_operation_rate(flops, precision)} in {precision} by the data sheet of {board.gpu}{note}"
    sentence += f" at {quoted_mhz:,.0f} MHz"
    if held_mhz is None:
        return _Peak(flops, f"{sentence}; the clock that was held is not known")
    clock = f" at {held_mhz:,.0f} MHz"
    return _Peak(flops * held_mhz / quoted_mhz, f"{sentence}, in proportion to the clock that each test held", clock)


def _operation_rate(per_second: float, precision: str = "fp32") -> str:
    return units.rate(per_second, "OP" if precision == "int8" else "FLOP")


def _share(share: float) -> str:
    """Return a share as text.

    >>> _share(0.4567), _share(0.00123), _share(1.004)
    ('46 %', '0.12 %', '100 %')
    """
    return f"{100 * share:.{2 if share < 0.995 else 3}g} %"
