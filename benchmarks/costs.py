"""What starting, planning and finding environments ready cost, beside nox."""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.environments import MATRIX, backends, nothing
from benchmarks.table import Row, UnmeasurableError
from benchmarks.turns import command, in_turns
from runner.backends import Backend
from runner.core.model import Request
from runner.matrix import load, parse
from runner.plan.document import plan_document
from runner.plan.planner import plan
from runner.session.context import setup
from runner.session.options import Options
from runner.session.preparation import prepare

REPEATS = 15
LISTINGS = 3  # of sessions or environments, up to seconds each
NOX = [sys.executable, "-m", "nox"]
CELLS = 10_000
ENVIRONMENTS = 18  # of as many cases as two workloads have, with that many phases and precisions
NOXFILE = """
import nox

@nox.session(venv_backend="none")
@nox.parametrize("first", range(100))
@nox.parametrize("second", range(100))
def cell(session, first, second):
    pass
"""


def start_up() -> Iterator[Row]:
    """Give ``runner --help`` beside ``nox --version``."""
    _needs_nox()
    ours, peer = in_turns([command([sys.executable, "-m", "runner", "--help"]), command([*NOX, "--version"])], REPEATS)
    yield Row("runner --help", _ms(ours), f"nox --version {_ms(peer)}", ours / peer, "peer", ours <= peer)


def planning() -> Iterator[Row]:
    """Give the planning of a matrix of more than 10,000 cells that was read already, alone and with its JSON.

    The peer expands 10,000 sessions of a noxfile and writes them as JSON; what starting nox takes is taken off.
    """
    environments = "".join(
        f'  torch-{k}: {{framework: torch, release: "1.{k}.0", python: "3.10", requirements: [torch]}}\n'
        for k in range(ENVIRONMENTS)
    )
    text = f"version: 1\nenvironments:\n{environments}workloads:\n  rnn-step: {{phases: [forward, train]}}\n"
    text += "  asr-lstm: {phases: [compile, compile-warm, forward, train], precisions: [fp32, tf32]}\n"
    matrix = parse(text.encode(), "generated.yaml")
    request = Request(environments=tuple(matrix.environments))
    count = len(plan(matrix, request, {}).cells)
    alone, with_document = in_turns(
        [lambda: plan(matrix, request, {}), lambda: plan_document(plan(matrix, request, {}))], REPEATS
    )
    yield Row(f"plan {count:,} cells", f"{alone:.3f} s", target="0.5 s", met=count >= CELLS and alone < 0.5)
    peer = _listing()
    peer_text = f"nox --list --json {peer:.2f} s for {CELLS:,}"
    yield Row("the same, as JSON", f"{with_document:.3f} s", peer_text, (with_document / count) / (peer / CELLS))


def _listing() -> float:
    """Return the seconds that nox takes to list 10,000 sessions, beyond its start."""
    _needs_nox()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "noxfile.py"
        file.write_text(NOXFILE)
        listed = command([*NOX, "-f", str(file), "--list", "--json"])
        listing, start = in_turns([listed, command([*NOX, "--version"])], LISTINGS)
    return listing - start


def provisioning() -> Iterator[Row]:
    """Give the time to find every environment ready that is, for each backend."""
    for name, backend in backends():
        if isinstance(backend, str):
            yield Row(f"provision what is ready, {name}", target="3 s", reason=backend)
            continue
        count = _provisioned(backend)
        again = in_turns([partial(_provisioned, backend)], LISTINGS)[0]
        yield Row(f"provision {count} ready, {name}", f"{again:.2f} s", target="3 s", met=again < 3)


def _provisioned(backend: Backend) -> int:
    """Ask for every environment that needs nothing to be made; return how many there are."""
    context = setup(Options(matrix=MATRIX, device="cpu", backend=backend.name))
    prepared = prepare(load(MATRIX), context.request, backend, context.settings, None)
    ready = [spec for spec in prepared.specs if spec.environment in prepared.survey.cached]
    return sum(backend.provision(spec, nothing).cached for spec in ready)


def _needs_nox() -> None:
    if importlib.util.find_spec("nox") is None:
        raise UnmeasurableError("nox is not installed")


def _ms(value: float) -> str:
    return f"{value * 1e3:.0f} ms"
