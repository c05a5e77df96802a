"""The environments of a session: planned as ``runner run`` plans them, started as it starts them, and asked.

``Bench.session`` lends the real harness, ``Bench.probe`` a program of ``probes/`` at the same place: in the same image
or interpreter, with the same limits and the same GPU.
"""

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.first_day.rows import UntestableError
from benchmarks.first_day.settings import ROOT, Settings
from runner.backends import Channel
from runner.core import machine
from runner.core.errors import NothingSelectedError
from runner.core.locks import exclusive
from runner.core.model import Block, Cell, Gpu, Limits, Provisioned, Spec, device_id
from runner.gpu.clocks.policy import ClockHold
from runner.gpu.device import DeviceSession
from runner.harness import protocol
from runner.measure.references import References
from runner.measure.session import Session
from runner.session.context import Context, setup
from runner.session.options import Options
from runner.session.preparation import Prepared, prepare

RUN = "first-day"  # names the containers of this session
SHIM = "from benchmarks.first_day.probes.server import main\n"
HELLO_SECONDS = 300.0
MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Bench:
    """A plan of this session, and those of its environments that exist."""

    settings: Settings
    context: Context
    prepared: Prepared
    ready: dict[str, Provisioned] = field(default_factory=dict)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU that is measured; None on a CPU."""
        return self.context.gpu

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The environments of the plan that exist, in the order of the matrix: old releases of a framework first."""
        return tuple(spec for spec in self.prepared.specs if spec.environment in self.prepared.survey.cached)

    def newest(self, *frameworks: str) -> Spec:
        """Return the newest environment of the first framework that has one.

        Raises:
            UntestableError: there is none.
        """
        for framework in frameworks:
            specs = [spec for spec in self.specs if spec.framework == framework]
            if specs:
                return specs[-1]
        raise UntestableError(f"no environment with {' or '.join(frameworks)} is ready")

    def made(self, spec: Spec) -> Provisioned:
        """Return an environment that exists."""
        if spec.environment not in self.ready:
            self.ready[spec.environment] = self.context.backend.provision(spec, lambda _: None)
        return self.ready[spec.environment]

    def limits(self) -> Limits:
        """Return what a server may use: about what a run would give it."""
        memory = int(MEMORY_SHARE * machine.available_memory())
        return Limits(memory=memory, device=device_id(self.gpu), run=RUN)

    def first_cell(self, spec: Spec, fits: Callable[[Cell], bool]) -> Cell:
        """Return the first cell of an environment in the plan that fits."""
        cells = (cell for block in self.prepared.plan.blocks for cell in block.cells)
        return next(cell for cell in cells if cell.environment == spec.environment and fits(cell))

    @contextmanager
    def session(self, spec: Spec) -> Iterator[Session]:
        """Lend a harness server that has imported its framework.

        Raises:
            UntestableError: it does not start.
        """
        session = Session(self.context.backend.open(self.made(spec), self.limits()), f"{spec.environment}#1")
        try:
            threads = self.context.request.threads
            reply = session.hello(spec.framework, threads, self.settings.device, HELLO_SECONDS)
            if reply["status"] != "ok":
                raise UntestableError(f"{spec.environment} does not start: {reply['class']}: {reply['reason']}")
            yield session
        finally:
            session.close()

    @contextmanager
    def probe(self, spec: Spec) -> Iterator["Probe"]:
        """Lend the server of probes in an environment."""
        made = self.made(spec)
        if self.context.backend.name == "docker":
            from runner.backends.docker.channel import DockerChannel
            from runner.backends.docker.cleanup import owner

            channel: Channel = DockerChannel(made, self.limits(), owner(), archive())
        else:
            from runner.backends.local_channel import ProcessChannel

            isolated = self.context.backend.name != "host"
            channel = ProcessChannel(made.handle, self.limits().device, archive(), isolated=isolated)
        try:
            yield Probe(channel)
        finally:
            channel.close()

    @contextmanager
    def held(self, say: Callable[[str], None] = print) -> Iterator[ClockHold]:
        """Keep other runs away and hold the clocks for the length of a block, as a run does, unless ``--no-pin``."""
        name = device_id(self.gpu)
        with ExitStack() as stack:
            stack.enter_context(exclusive(self.context.settings.cache / f"measuring-{name}.lock", say))
            device = DeviceSession(self.gpu, self.context.settings.clocks, say)
            stack.enter_context(device.hold(RUN))
            yield device.pin

    def ask(self, session: Session, cell: Cell, case: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401
        """Have a session measure a cell once, and return its reply.

        Args:
            session: of the cell's environment.
            cell: what to measure.
            case: its specification.
            changes: of the request: ``seconds``, ``timeout``, ``memory``.
        """
        references = References(self.context.settings.cache / "references", self.context.request.threads)
        spec = next(spec for spec in self.specs if spec.environment == cell.environment)
        request = {
            "case": case,
            "key": references.key(case),
            "framework": spec.framework,
            "implementation": cell.implementation,
            "phase": cell.phase,
            "device": self.settings.device,
            "precision": cell.precision,
            "seconds": 0.2,
            "cache": self.context.backend.cache(self.made(spec)),
            "timeout": 120.0,
            "memory": None,
            **changes,
        }
        return session.measure(request, lambda: references.get(case))

    def block(self, cell: Cell) -> Block:
        """Return the case of a planned cell."""
        return next(block for block in self.prepared.plan.blocks if cell in block.cells)


def planned(settings: Settings, options: Options) -> Bench:
    """Return the plan of some options.

    Raises:
        UntestableError: nothing is selected.
    """
    try:
        context = setup(options)
        prepared = prepare(context.matrix, context.request, context.backend, context.settings, context.gpu)
    except NothingSelectedError as error:
        raise UntestableError(error.problems[0].message) from error
    return Bench(settings, context, prepared)


class Probe:
    """A server of probes."""

    def __init__(self, channel: Channel) -> None:
        """Take its channel."""
        self.channel = channel

    def ask(self, name: str, limit: float, **request: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return what a probe answers; it has ``error`` where it raised, ended, or was silent for ``limit`` s."""
        try:
            self.channel.send(protocol.encode({"probe": name, **request}), limit)
            line = self.channel.receive(limit)
        except TimeoutError:
            return {"error": f"no answer within {limit:g} s"}
        except BrokenPipeError:
            line = None
        if line is None:
            return {"error": ": ".join(self.channel.ending())}
        return protocol.decode(line)


def archive() -> bytes:
    """Return what a server of probes reads first, as ``harness_archive.pack`` does; the harness is in it, too."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("harness/__init__.py", "")
        packed.writestr("harness/server.py", SHIM)
        packed.writestr("runner/__init__.py", "")
        packed.writestr("benchmarks/__init__.py", "")
        packed.writestr("benchmarks/first_day/__init__.py", "")
        for folder in (ROOT / "runner" / "harness", ROOT / "benchmarks" / "first_day" / "probes"):
            for path in sorted(folder.rglob("*.py")):
                packed.writestr(path.relative_to(ROOT).as_posix(), path.read_bytes())
    data = out.getvalue()
    return f"{len(data)}\n".encode("ascii") + data
