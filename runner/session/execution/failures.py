"""How a run ends: the word that its journal gets, and what to do next where it ended too early."""

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from runner.core.errors import EngineError, GpuError, Problem, RecordError, RunnerError, file_problem
from runner.core.paths import DEFAULT_REPORTS
from runner.core.progress import Progress
from runner.measure.round_plan import OUTAGE
from runner.store.run import Run

ENDINGS: tuple[tuple[type[BaseException], str], ...] = (
    (KeyboardInterrupt, "interrupted"),
    (GpuError, "gpu"),
    (EngineError, "engine"),
    (BaseException, "error"),
)
"""Exception -> the word that the journal's ``ended`` event gets; the first class that fits counts."""


def run_name(run: Run) -> str:
    """Return what a command calls a run: its id in the default reports folder, else its path."""
    in_default_folder = run.path.resolve() == (DEFAULT_REPORTS / "runs" / run.id).resolve()
    return run.id if in_default_folder else shlex.quote(str(run.path))


@contextmanager
def recorded_ending(
    run: Run, progress: Progress, again: str = "", options: str = "", missing: Collection[str] = ()
) -> Iterator[None]:
    """Write to the journal how the block ended, and say how to continue where that was too early.

    Args:
        run: the run that is measured.
        progress: takes the command that continues it.
        again: the command that measures it again, for a run that cannot be resumed; empty if it can.
        options: what the command that continues a run on other hosts needs beside the run, with a space in front.
        missing: environments that an outage left out, so that there is something to continue.
    """
    command = again or f"runner run --resume {run_name(run)}{options}"
    try:
        yield
    except BaseException as error:
        word = next(word for kind, word in ENDINGS if isinstance(error, kind))
        with suppress(OSError) if isinstance(error, OSError) else nullcontext():
            run.note("ended", how=word)
        if isinstance(error, KeyboardInterrupt):
            progress.note(f"`{command}` {'measures it again' if again else 'continues it'}")
        advised = _with_advice(error, run, command, on_hosts=bool(options))
        if advised is error:
            raise
        raise advised from error
    if missing and not again:
        run.note("ended", how=OUTAGE)
        progress.note(f"`{command}` tries again to build {', '.join(missing)}, and measures their cases anew")
    else:
        run.note("ended", how="done")


def _with_advice(error: BaseException, run: Run, command: str, *, on_hosts: bool) -> BaseException:
    """Return an error whose hint says how to continue, or the error itself where there is nothing to add."""
    match error:
        case GpuError() if error.kind:  # the driver reported it
            hint = f"check with `nvidia-smi` that the GPU is back, then `{command}`; finished results are kept"
            return GpuError(Problem(error.problems[0].message, hint=hint), kind=error.kind)
        case EngineError():
            remedy = (on_hosts and error.problems[0].hint) or "start the engine again"
            hint = f"{remedy}, then `{command}`; finished results are kept"
            return EngineError(Problem(error.problems[0].message, hint=hint))
        case OSError():
            of_run = error.filename is None or Path(str(error.filename)).is_relative_to(run.reports)
            return (RecordError if of_run else RunnerError)(file_problem(error, run.path, then=f"`{command}`"))
        case _:
            return error
