"""Setting a GPU's clocks, each call written down before it is made, and undoing what is written down."""

from collections.abc import Callable

from runner.core.errors import GpuError
from runner.gpu.clocks import policy
from runner.gpu.clocks.journal import Entry, Ledger, Undo
from runner.gpu.clocks.policy import Pin
from runner.gpu.nvml import Device

REFUSED = ("unsupported", "argument", "permission")  # kinds of an answer after which nothing has changed


def pin(device: Device, ways: tuple[Pin, ...], book: Ledger) -> Pin:
    """Hold clocks in the first way that the driver takes; return what is held.

    Args:
        device: the GPU.
        ways: as ``choose.choose`` returns them.
        book: has an entry of the GPU.

    Raises:
        GpuError: the driver lets only root do that, or failed; what may have been set is in ``book``.
    """
    for way in ways:
        if way.how in {"none", "left"}:
            return way
        try:
            held = _locked(device, way, book) if way.how == "locked" else _application(device, way, book)
        except GpuError as error:
            if error.kind not in {"unsupported", "argument"}:
                raise
            continue
        book.holds(str(held))
        return held
    raise AssertionError("the last way holds nothing")


def _locked(device: Device, way: Pin, book: Ledger) -> Pin:
    if way.sm is not None:
        mhz = way.sm
        _set("sm", lambda: device.lock_sm(mhz), book)
    if way.memory is None:
        return way
    memory = way.memory
    try:
        _set("memory", lambda: device.lock_memory(memory), book)
    except GpuError as error:
        if error.kind not in {"unsupported", "argument"} or way.sm is None:
            raise
        return policy.without_memory(way, f"the memory clock is not held: {error.problems[0].message}")
    return way


def _application(device: Device, way: Pin, book: Ledger) -> Pin:
    _set("application", lambda: device.set_application(policy.pair(way)), book)
    return way


def _set(what: Undo, call: Callable[[], None], book: Ledger) -> None:
    """Write down what is about to be set, and set it; what the driver refused was not set."""
    book.will(what)
    try:
        call()
    except GpuError as error:
        if error.kind in REFUSED:
            book.was_refused(what)
        raise


def undo(device: Device, entry: Entry) -> None:
    """Undo all that an entry says may have been set, the last first; all of it is tried, whatever fails.

    Raises:
        GpuError: something could not be undone.
    """
    failed: list[GpuError] = []
    for what in reversed(entry.undo):
        try:
            _undo(device, what, entry)
        except GpuError as error:
            if error.kind != "unsupported":  # then it was not set either
                failed.append(error)
    if failed:
        raise failed[0]


def _undo(device: Device, what: Undo, entry: Entry) -> None:
    match what:
        case "sm":
            device.unlock_sm()
        case "memory":
            device.unlock_memory()
        case "application":
            default = device.abilities().default
            device.set_application(None if entry.before == default else entry.before)


def everything(device: Device) -> Entry:
    """Return an entry that stands for all clocks of a GPU, whoever has set them: undone, they are the driver's own."""
    able = device.abilities()
    clocks: list[Undo] = ["sm", "memory"]
    if able.application:
        clocks.append("application")
    return Entry(uuid=device.gpu().uuid, undo=tuple(clocks), before=able.default)
