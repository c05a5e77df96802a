"""``runner clocks``: show the GPUs' clocks and who holds them, and reset them."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from runner.core.errors import GpuError, Problem, RecordError
from runner.core.model import Gpu
from runner.core.model.devices import ClockPolicy
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.clocks import journal, recovery
from runner.gpu.clocks.client import Guard
from runner.gpu.clocks.journal import Entry
from runner.gpu.clocks.permission import SUDO, allow, may_lock, sudo_usable
from runner.gpu.clocks.preconditions import Announcement, announcement, observe, read_announcement
from runner.gpu.clocks.protocol import Order
from runner.gpu.clocks.recovery import Busy, Undone
from runner.gpu.detect import answering
from runner.gpu.types import Pair

VERSION = 1
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A GPU that the driver lists, with its present clocks in MHz.

    Attributes:
        index: as ``nvidia-smi`` numbers it.
        cuda: as ``--device`` and frameworks number it; None if ``CUDA_VISIBLE_DEVICES`` hides it, or it is in
            MIG slices.
        processes: that compute on it; None if the driver does not report them.
        announcement: what a run will do to its clocks if the matrix does not choose others.
    """

    index: int
    cuda: int | None
    uuid: str
    name: str
    sm: int | None
    memory: int | None
    application: Pair | None
    processes: tuple[str, ...] | None
    announcement: str

    def __str__(self) -> str:
        """Return the GPU and its clocks as a line."""
        clocks = [f"{name} {mhz} MHz" for name, mhz in (("SM", self.sm), ("memory", self.memory)) if mhz is not None]
        if self.application:
            clocks.append(f"application clocks {self.application.sm} and {self.application.memory} MHz")
        number = f"GPU {self.index}" if self.cuda is None else f"cuda:{self.cuda}"
        return f"{number}  {self.name}  {', '.join(clocks)}"


@dataclass(frozen=True, slots=True)
class Held:
    """The journal entry of a GPU; ``trouble`` says why it cannot be read."""

    uuid: str
    entry: Entry | None
    alive: bool
    trouble: str = ""

    def __str__(self) -> str:
        """Return who holds the clocks, and in which state, as a sentence."""
        if self.entry is None:
            return self.trouble
        who = f"run {self.entry.run or 'unknown'}, process {self.entry.runner}, since {self.entry.at}"
        if self.alive:
            return f"held by {who}: {self.entry.held or 'about to be set'}"
        if self.entry.on_other_machine:
            return f"held on another machine by {who}: run `runner clocks` there"
        if self.entry.gone:
            return "nothing is held: the machine has rebooted since"
        why = f" ({self.entry.trouble})" if self.entry.trouble else ""
        return f"left locked by {who}, whose guardian is dead{why}: `runner clocks reset` restores them"


@dataclass(frozen=True, slots=True)
class Shown:
    """The GPUs of this machine with their journal entries; ``trouble`` says why there is no GPU."""

    boards: tuple[Board, ...]
    held: Mapping[str, Held]
    trouble: str = ""

    def json(self) -> dict[str, Any]:
        """Return the GPUs as JSON values."""
        here = [{**asdict(board), "held": self._held(board.uuid)} for board in self.boards]
        return {"version": VERSION, "gpus": here, "absent": [self._held(uuid) for uuid in self._absent()]}

    def _held(self, uuid: str) -> dict[str, Any] | None:
        held = self.held.get(uuid)
        if held is None:
            return None
        entry = asdict(held.entry) if held.entry else {"uuid": uuid, "trouble": held.trouble}
        return {**entry, "alive": held.alive}

    def _absent(self) -> list[str]:
        return [uuid for uuid in self.held if uuid not in {board.uuid for board in self.boards}]

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  its lines are not laid out
        """Return the GPUs as lines for a terminal."""
        lines = [self.trouble] if self.trouble else []
        for board in self.boards:
            lines += [str(board), f"        {self.held.get(board.uuid, 'not held by matrix-runner')}"]
            if board.uuid not in self.held:
                lines.append(f"        a run: {board.announcement}")
        lines += [f"{uuid}, not on this machine\n        {self.held[uuid]}" for uuid in self._absent()]
        return "\n".join(lines)


def show() -> Shown:
    """Return the clocks of each GPU, and who holds them."""
    try:
        boards, trouble = call_with_timeout(_boards), ""
    except GpuError as error:
        boards, trouble = (), error.problems[0].message
    return Shown(boards, {held.uuid: held for held in _written()}, trouble or ("" if boards else "there is no GPU"))


def _boards() -> tuple[Board, ...]:
    boards = []
    numbers = {gpu.uuid: number for number, gpu in enumerate(answering())}
    with nvml.opened() as driver:
        for device in driver.devices():
            with suppress(GpuError):
                gpu, seen, now = device.gpu(), observe(device), device.reading()
                announced = announcement(gpu, seen, ClockPolicy(), may_lock=may_lock())
                boards.append(
                    Board(
                        index=device.index,
                        cuda=numbers.get(gpu.uuid),
                        uuid=gpu.uuid,
                        name=gpu.name,
                        sm=now.sm,
                        memory=now.memory,
                        application=seen.able.application,
                        processes=seen.processes,
                        announcement=announced.text if announced else "",
                    )
                )
    return tuple(boards)


def _written() -> list[Held]:
    held = []
    for state_folder in journal.folders(os.environ, os.geteuid()):
        for book in journal.files(state_folder):
            alive = journal.alive(book.path)
            try:
                entry = book.read()
            except RecordError as error:
                held.append(Held(book.path.stem, None, alive, error.problems[0].message))
                continue
            if entry is not None:
                held.append(Held(book.path.stem, entry, alive))
    return held


def announcements(gpus: Sequence[Gpu], policy: ClockPolicy) -> tuple[Announcement, ...]:
    """Return what a run will do to the clocks of GPUs, for those that can be read; empty if it leaves the clocks."""
    return tuple(filter(None, (_announced(gpu, policy) for gpu in gpus)))


def _announced(gpu: Gpu, policy: ClockPolicy) -> Announcement | None:
    try:
        return read_announcement(gpu, policy)
    except GpuError as error:
        return Announcement(error.problems[0].message, error.problems[0].hint or "")


def reset(gpu: Gpu | None, say: Say) -> str:
    """Reset clocks; return what was done, as a sentence.

    Args:
        gpu: the GPU whose clocks are reset to the driver's defaults, whoever set them; None for all GPUs whose clocks
            a dead guardian of this program left locked.
        say: gets a message for each GPU that is restored, or skipped because a runner uses it.

    Raises:
        GpuError: some clocks could not be reset.
    """
    at_work = {held.uuid: str(held) for held in _written() if held.alive}
    if gpu is not None:
        return _reset_gpu(gpu, at_work.get(gpu.uuid))
    for sentence in at_work.values():
        say(f"skipped: {sentence}")
    done: list[str] = []
    failed = recovery.recover(done.append)
    for sentence in done:
        say(sentence)
    if failed:
        raise GpuError(*(Problem(held, hint=allow(os.geteuid())) for held in failed))
    return f"reset the clocks of {len(done)} GPU{'s' * (len(done) != 1)}" if done else "no clocks were left locked"


def _reset_gpu(gpu: Gpu, holder: str | None) -> str:
    if holder:
        raise GpuError(Problem(f"the clocks of {gpu.name} are {holder}", hint="wait until it ends, or end it"))
    order = Order(task="reset", uuid=gpu.uuid)
    outcome = recovery.restore(order, journal.folder(os.environ, os.geteuid()))
    if not isinstance(outcome, Undone) and sudo_usable():
        answer = Guard(order, SUDO).end()
        outcome = Undone() if answer and answer["said"] == "restored" else outcome
    if isinstance(outcome, Undone):
        return f"reset the clocks of {gpu.name} to the driver's defaults"
    hint = "wait until it ends, or end it" if isinstance(outcome, Busy) else allow(os.geteuid())
    raise GpuError(Problem(f"could not reset the clocks of {gpu.name}: {outcome.why}", hint=hint))
