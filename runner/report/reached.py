"""What steps reached of what their device could do, and what host and device each spend on a step of a GPU."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from runner.comparison import Results
from runner.compat.peaks import Peak, peak
from runner.controls import SIZE
from runner.report import words
from runner.workloads import CASES, product_flops

NONE = (0.0, "")
HOST_AND_DEVICE = ("dispatch_seconds", "device_seconds")


class Reached(NamedTuple):
    """How far the cells of a run came, by the id of the cell.

    Attributes:
        rates: the operations of its matrix products in a second, with their share of the peak where one is known.
        spent: what the host spent until a call returned, and the device on all it was asked; nothing without events.
        peaks: what shares are of, as sentences.
    """

    rates: Mapping[str, str]
    spent: Mapping[str, str]
    peaks: tuple[str, ...]


def reached(results: Results, seconds: Mapping[str, float]) -> Reached:
    """Return how far the cells of a run came; ``seconds`` has what a step of each took."""
    columns = ("cell", "workload", "case", "phase", "effective_precision", "device", "device_name")
    first = results.rounds.drop_duplicates("cell")
    product, rates, peaks = _product(results), {}, dict[str, None]()
    for cell, workload, case, phase, precision, device, name in zip(
        *(first[column].tolist() for column in columns), strict=True
    ):
        done = operations(f"{workload}/{case}", phase, seconds[cell])
        if done is None:
            continue
        top, said = _of_board(peak(name), precision) if device != "cpu" else product if precision == "fp32" else NONE
        rates[cell] = _rate(done) + (f", {_share(done / top)}" if top else "")
        peaks.update(dict.fromkeys([said] if top else []))
    return Reached(rates, dict(_spent(results)), tuple(peaks))


def operations(case_id: str, phase: str, seconds: float) -> float | None:
    """Return the operations of a step's matrix products in a second.

    None for what is no step, and where the size is not known: a corpus, or the program of a publication.
    """
    if case_id not in CASES or phase.startswith("compile") or "+" in phase:
        return None
    return product_flops(CASES[case_id], phase) / seconds


def _product(results: Results) -> tuple[float, str]:
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
    return top, f"{_rate(top)} in {precision}, {found.gpu} by its data sheet{doubt}"


def _rate(operations: float) -> str:
    """Return operations in a second as text.

    >>> _rate(66.9e12), _rate(1.5e9)
    ('66.9 TFLOP/s', '1.50 GFLOP/s')
    """
    scale, unit = (1e12, "TFLOP/s") if operations >= 1e12 else (1e9, "GFLOP/s")
    return f"{words.number(operations / scale)} {unit}"


def _share(part: float) -> str:
    """Return a share as text.

    >>> _share(0.4567), _share(0.00123), _share(1.004)
    ('46 %', '0.12 %', '100 %')
    """
    return f"{100 * part:.{2 if part < 0.995 else 3}g} %"


def _spent(results: Results) -> Iterator[tuple[str, str]]:
    """Give cell -> the medians over rounds of what host and device spent on a step."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for cell, host, device in zip(*(results.rounds[name].tolist() for name in ("cell", *HOST_AND_DEVICE)), strict=True):
        if host and device:
            found[cell].append((host, device))
    for cell, both in found.items():
        host, device = map(median, zip(*both, strict=True))
        scale = words.unit((host, device))
        yield cell, f"host {words.duration(host, scale)}, device {words.duration(device, scale)}"
