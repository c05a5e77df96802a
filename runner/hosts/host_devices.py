"""The devices of other hosts: which take part, what each would measure, and which are free."""

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from runner.core.errors import EngineError, NothingSelectedError, Problem, RecordError
from runner.core.progress import Progress
from runner.core.text import printable
from runner.hosts import tasks
from runner.hosts.executors.executor import Completion, Executor
from runner.hosts.planning import offered_plan
from runner.hosts.tasks import Inquiry, Offer

MAX_FAILURES = 2
"""Blocks that a device or a host may fail one after the other before others are preferred."""
MAX_LOST = 4
"""How often a device may be lost, one time after the other, before it has said what it would measure."""
WAIT_SECONDS = 1.0
"""How long the driver waits for results before it looks for new devices."""
NOTE_LENGTH = 2_000
"""The longest sentence of another host that is printed, in characters."""
JOIN_SECONDS = 60.0
"""How long a run waits for a device that can go on."""


@dataclass(slots=True, kw_only=True)
class Devices:
    """The devices that an executor reaches.

    Attributes:
        executor: reaches them.
        project: the archive of ``project.pack``.
        options: of ``tasks.sent_options``.
        progress: shows the work.
        clock: seconds, monotonic.
        offers: key -> what is offered, without the plan and its cases.
        inquiries: key -> the token of the inquiry that the device answers now.
        refused: keys of devices that take no part.
        failures: key of a device, or host that the executor chose -> blocks that it has failed since its last good one.
        lost: key -> how often the device was lost before it has said what it would measure.
        made: host -> the environments that it has made.
    """

    executor: Executor
    project: bytes
    options: Mapping[str, object]
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    offers: dict[str, Offer] = field(default_factory=dict)
    inquiries: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    made: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def update(self) -> None:
        """Ask each new device what it would measure, and forget those that are gone."""
        present = self.executor.devices()
        for key in self.offers.keys() - present.keys():
            self.progress.note(f"{self.offers.pop(key).host}: {key} has left")
        for key in sorted(present.keys() - self.offers.keys() - self.inquiries.keys() - self.refused):
            token = self.inquiries[key] = secrets.token_hex(16)
            inquiry = Inquiry(project=self.project, options=self.options, token=token)
            self.executor.submit(key, tasks.encode(inquiry), self.failing)

    def take_offer(self, completion: Completion) -> Offer | None:
        """Return the offer of a device, and keep it without its plan; or say why the device takes no part."""
        token = self.inquiries[completion.key]
        if completion.result is not None and tasks.token_of(completion.result) not in (token, ""):
            return None  # it is late; a worker that could not read its task answers without a token
        del self.inquiries[completion.key]
        try:
            offer = _offer(completion)
        except RecordError as error:
            self._take_failed_inquiry(completion, error.problems[0].message)
            return None
        if offer.kind not in {known.kind for known in self.offers.values()}:
            for note in offer.notes:
                self.progress.note(f"{offer.host}: {printable(note, NOTE_LENGTH)}")
        self.lost[completion.key] = 0
        self.made[offer.host].update(offer.made)
        self.offers[completion.key] = replace(offer, plan={}, cases={})  # plans are large, and equal within a kind
        self.progress.note(f"{offer.host}: {offer.device_name} takes part")
        return offer

    def _take_failed_inquiry(self, completion: Completion, reason: str) -> None:
        """Ask a device again that was lost, or whose next task goes to another host; otherwise, it takes no part."""
        key = completion.key
        if not completion.lost and not completion.host:
            self.refuse(key, reason)
            return
        if not completion.lost:
            self.failures[completion.host] = MAX_FAILURES
        self.lost[key] += 1
        self.progress.note(f"{completion.host or key} has not said what it would measure: {reason}")
        if self.lost[key] >= MAX_LOST:
            self.refuse(key, f"it has not said what it would measure {MAX_LOST} times")

    @property
    def failing(self) -> frozenset[str]:
        """The devices and hosts that get no blocks while others can measure them."""
        return frozenset(name for name, count in self.failures.items() if count >= MAX_FAILURES)

    def refuse(self, key: str, reason: str) -> None:
        """Give a device no more tasks, and say why."""
        self.offers.pop(key, None)
        self.refused.add(key)
        self.progress.note(f"{key} takes no part: {reason}")

    def count(self, name: str, *, good: bool) -> None:
        """Note how a block ended on a device, or on a host that the executor chose."""
        self.failures[name] = 0 if good else self.failures[name] + 1
        if self.failures[name] == MAX_FAILURES:
            self.progress.note(
                f"{name} gets no blocks while others can measure them: it failed {MAX_FAILURES} one after the other"
            )

    def first_offers(self) -> tuple[Offer, ...]:
        """Return an offer of each kind of device that answers at the start.

        Raises:
            EngineError: no device joined within ``JOIN_SECONDS``, or the scheduler is gone.
            NothingSelectedError: no device can take part.
        """
        limit = self.clock() + JOIN_SECONDS
        first_by_kind: dict[str, Offer] = {}
        while True:
            self.update()
            if not self.inquiries and self.offers:
                return tuple(first_by_kind.values())
            if not self.inquiries and self.refused:
                raise NothingSelectedError(Problem("no device takes part", hint="the reasons are above"))
            if not self.inquiries and self.clock() > limit:
                hint = "start one with `runner worker ADDRESS` on each host"
                raise EngineError(Problem(f"no worker joined within {JOIN_SECONDS:.0f} s", hint=hint))
            for completion in self.executor.completed(WAIT_SECONDS):
                offer = self.take_offer(completion) if completion.key in self.inquiries else None
                if offer is not None:
                    first_by_kind.setdefault(offer.kind, offer)

    def free(self, busy: Mapping[str, object]) -> Iterator[tuple[str, Offer]]:
        """Yield (key, offer) of the devices that have no task."""
        yield from ((key, offer) for key, offer in sorted(self.offers.items()) if key not in busy)

    def able(self) -> Mapping[str, Offer]:
        """Return key -> offer of the devices that do not fail."""
        failing = self.failing
        return {key: offer for key, offer in self.offers.items() if key not in failing}


def _offer(completion: Completion) -> Offer:
    """Return the offer in a completion; raises RecordError where there is none."""
    if completion.result is None:
        raise RecordError(Problem(completion.reason))
    offer = tasks.decode(tasks.payload(completion.result))
    if not isinstance(offer, Offer):
        raise RecordError(Problem("it answered an inquiry with something else"))
    offered_plan(offer)  # a device whose plan cannot be read takes no part, and the others go on
    return offer
