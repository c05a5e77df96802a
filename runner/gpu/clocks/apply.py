"""Set a GPU's clocks, with a journal entry before each call, and undo what the journal records."""

from collections.abc import Callable

from runner.core.errors import GpuError
from runner.gpu.clocks import policy
from runner.gpu.clocks.journal import ClockEntry, Ledger, Undo
from runner.gpu.clocks.policy import ClockHold
from runner.gpu.nvml import Device

REFUSED = ("unsupported", "argument", "permission")  # kinds of errors after which no clock has changed


def pin(device: Device, ways: tuple[ClockHold, ...], book: Ledger) -> ClockHold:
    """Hold clocks in the first way that the driver accepts; return that way.

    Args:
        device: the GPU.
        ways: as ``policy.choose`` returns them.
        book: the journal file of the GPU, with an entry.

    Raises:
        GpuError: the driver lets only root do that, or failed; ``book`` records what may have been set.
    """
    for way in ways:
        if way.how not in policy.HELD:
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


def _locked(device: Device, way: ClockHold, book: Ledger) -> ClockHold:
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


def _application(device: Device, way: ClockHold, book: Ledger) -> ClockHold:
    _set("application", lambda: device.set_application(policy.pair(way)), book)
    return way


def _set(what: Undo, call: Callable[[], None], book: Ledger) -> None:
    """Record what is about to be set, then set it; remove the record if the driver refuses."""
    book.will(what)
    try:
        call()
    except GpuError as error:
        if error.kind in REFUSED:
            book.was_refused(what)
        raise


def undo(device: Device, entry: ClockEntry) -> None:
    """Undo everything that an entry records, last first; a failure does not stop the others.

    Raises:
        GpuError: at least one clock could not be reset.
    """
    failed: list[GpuError] = []
    for what in reversed(entry.undo):
        try:
            _undo(device, what, entry)
        except GpuError as error:
            if error.kind != "unsupported":  # then it was never set
                failed.append(error)
    if failed:
        raise failed[0]


def _undo(device: Device, what: Undo, entry: ClockEntry) -> None:
    match what:
        case "sm":
            device.unlock_sm()
        case "memory":
            device.unlock_memory()
        case "application":
            default = device.abilities().default
            device.set_application(None if entry.before == default else entry.before)


def everything(device: Device) -> ClockEntry:
    """Return an entry for all clocks of a GPU: undoing it resets them to the driver's defaults, whoever set them."""
    able = device.abilities()
    clocks: list[Undo] = ["sm", "memory"]
    if able.application:
        clocks.append("application")
    return ClockEntry(uuid=device.gpu().uuid, undo=tuple(clocks), before=able.default)
