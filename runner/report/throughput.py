"""What steps reached of what their device could do, and what host and device each spend on a step of a GPU."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from runner.analysis.model import Dataset
from runner.catalog.cases import CASES, deepbench_rnn, deepbench_sparse, moved_bytes, product_flops
from runner.catalog.hardware.peaks import Peak, peak
from runner.core.model.events import CANARY_SIZE as SIZE
from runner.harness.cases import repeats
from runner.report import formatting

NONE = (0.0, "")
HOST_AND_DEVICE = ("dispatch_seconds", "device_seconds")


class Reached(NamedTuple):
    """How far the cells of a run came, by the id of the cell.

    Attributes:
        rates: the operations of its matrix products in a second, with their share of the peak where one is known; of
            a single operation also the bytes that it moves in a second, at least, and of a recurrent layer of DeepBench
            the operations that its tables count.
        spent: what the host spent until a call returned, and the device on all it was asked; nothing without events.
        peaks: what shares are of, as sentences.
    """

    rates: Mapping[str, str]
    spent: Mapping[str, str]
    peaks: tuple[str, ...]


def reached(results: Dataset, seconds: Mapping[str, float]) -> Reached:
    """Return how far the cells of a run came; ``seconds`` has what a step of each took."""
    columns = ("cell", "workload", "case", "phase", "effective_precision", "device", "device_name", "implementation")
    first = results.rounds.drop_duplicates("cell")
    product, rates, peaks = _product(results), dict[str, str](), dict[str, None]()
    for cell, workload, case, phase, precision, device, name, slug in zip(
        *(first[column].tolist() for column in columns), strict=True
    ):
        done = operations(f"{workload}/{case}", phase, seconds[cell], slug)
        moved = bandwidth(f"{workload}/{case}", precision, seconds[cell], slug)
        moved = moved or without_inputs(f"{workload}/{case}", phase, seconds[cell])
        if not done:
            rates.update([(cell, moved)] if moved else [])
            continue
        top, said = _of_board(peak(name), precision) if device != "cpu" else product if precision == "fp32" else NONE
        share = f", {_share(done / top)}" if top else ""
        rates[cell] = f"{_rate(done, precision)}{share}" + (f"; {moved}" if moved else "")
        peaks.update(dict.fromkeys([said] if top else []))
    return Reached(rates, dict(_spent(results)), tuple(peaks))


def operations(case_id: str, phase: str, seconds: float, slug: str = "") -> float | None:
    """Return the operations of a step's matrix products in a second.

    None for what is no step, and where the size is not known: a corpus, or the program of a publication.
    """
    plain, _, published = phase.partition("+")
    if case_id not in CASES or plain.startswith("compile") or (published and not repeats(dict(CASES[case_id]))):
        return None
    if slug == deepbench_sparse.DENSE:
        return deepbench_sparse.forward_flops(CASES[case_id]) / seconds
    return product_flops(CASES[case_id], plain) / seconds


def bandwidth(case_id: str, precision: str, seconds: float, slug: str = "") -> str:
    """Return the bytes that a single operation moves in a second, at least, as text; empty for anything else.

    >>> bandwidth("deepbench-allreduce/train-001-100000-c2", "fp32", 1e-3)
    '0.800 GB/s'
    """
    moved = moved_bytes(CASES[case_id], precision) if case_id in CASES else None
    if slug == deepbench_sparse.DENSE:
        moved = deepbench_sparse.dense_bytes(CASES[case_id])
    return units.rate(moved / seconds, "B") if moved else ""


def without_inputs(case_id: str, phase: str, seconds: float) -> str:
    """Return the operations in a second of DeepBench's recurrent layers as it counts them; empty for anything else.

    It counts the passes back as much as the one forward, and no product with the inputs, which is inside here.

    >>> without_inputs("deepbench-rnn/server-001-lstm-h512-b1-t25", "forward", 1e-3)
    '52.4 GFLOP/s without the inputs'
    """
    if not case_id.startswith(f"{deepbench_rnn.WORKLOAD}/"):
        return ""
    passes = 1 if phase.startswith("forward") else 3
    return f"{_rate(passes * deepbench_rnn.recurrent_flops(CASES[case_id]) / seconds)} without the inputs"


def _product(results: Dataset) -> tuple[float, str]:
    """Return the most that the canary reached, the peak of a CPU; 0 where there was none."""
    times = [seconds for _, _, seconds in results.canary]
    if not times:
        return NONE
    found = 2 * SIZE**3 / min(times)
    return found, f"{_rate(found)}, the most that NumPy reached beside it in a product of {SIZE} x {SIZE} numbers"


def _of_board(found: Peak | None, precision: str) -> tuple[float, str]:
    if found is None or precision not in found.operations:
        return NONE
    doubt = " (unverified)" if precision in found.unverified else ""
    top = found.operations[precision]
    return top, f"{_rate(top, precision)} in {precision}, {found.gpu} by its data sheet{doubt}"


def _rate(operations: float, precision: str = "fp32") -> str:
    """Return operations in a second as text.

    >>> _rate(66.9e12), _rate(1.5e9), _rate(1979e12, "int8")
    ('66.9 TFLOP/s', '1.50 GFLOP/s', '1979 TOP/s')
    """
    scale, prefix = (1e12, "T") if operations >= 1e12 else (1e9, "G")
    return f"{formatting.number(operations / scale)} {prefix}{'OP' if precision == 'int8' else 'FLOP'}/s"


def _share(part: float) -> str:
    """Return a share as text.

    >>> _share(0.4567), _share(0.00123), _share(1.004)
    ('46 %', '0.12 %', '100 %')
    """
    return f"{100 * part:.{2 if part < 0.995 else 3}g} %"


def _spent(results: Dataset) -> Iterator[tuple[str, str]]:
    """Give cell -> the medians over rounds of what host and device spent on a step."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for cell, host, device in zip(*(results.rounds[name].tolist() for name in ("cell", *HOST_AND_DEVICE)), strict=True):
        if host and device:
            found[cell].append((host, device))
    for cell, both in found.items():
        host, device = map(median, zip(*both, strict=True))
        scale = formatting.unit((host, device))
        yield cell, f"host {formatting.duration(host, scale)}, device {formatting.duration(device, scale)}"
