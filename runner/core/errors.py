"""Every error meant for people: a sentence, a place, a hint, and the exit code it ends the program with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file; line and column count from 1, ``width`` is the number of columns to underline."""

    file: str
    line: int
    column: int
    text: str = ""
    width: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it stands, and one thing to do about it."""

    message: str
    where: Where | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """Return the problem as a compiler would print it: place, line, carets, hint."""
        lines = [f"error: {self.message}"]
        if self.where is not None:
            at = self.where
            lines[0] = f"{at.file}:{at.line}:{at.column}: {lines[0]}"
            if at.text.strip():
                lines.append(f"{at.line:5} | {at.text}")
                lines.append(f"      | {' ' * (at.column - 1)}{'^' * max(at.width, 1)}")
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class RunnerError(Exception):
    """What went wrong, for a person to read; never printed with a traceback."""

    exit_code = 1

    def __init__(self, *problems: Problem | str) -> None:
        """Take one or more problems; a bare sentence becomes a problem of its own."""
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)
        super().__init__("\n\n".join(str(p) for p in self.problems))


class MatrixError(RunnerError):
    """The matrix file is not valid."""

    exit_code = 2


class UsageError(RunnerError):
    """The command line asks for something that is not there."""

    exit_code = 2


class NothingSelectedError(RunnerError):
    """The selection holds no cell."""

    exit_code = 3


class EngineError(RunnerError):
    """The container engine does not answer, or stopped answering."""

    exit_code = 4


class GpuError(RunnerError):
    """The GPU cannot do what was asked, or its driver refuses or does not answer."""

    exit_code = 5

    def __init__(self, *problems: Problem | str, kind: str = "") -> None:
        """Take the problems, and where the driver gave the error its kind, a word of ``runner.gpu.types.Kind``."""
        super().__init__(*problems)
        self.kind = kind


class RecordError(RunnerError):
    """A stored run cannot be read, or was written by a newer program."""

    exit_code = 6


class ProvisionError(RunnerError):
    """One environment could not be made; the matrix goes on without it."""

    def __init__(self, code: str, *problems: Problem | str, log: str = "") -> None:
        """Take the failure class (``image-build``, ``image-pull``, ``import``), the problems and the log's tail."""
        super().__init__(*problems)
        self.code = code
        self.log = log


class InterruptedRunError(RunnerError):
    """Ctrl-C or SIGTERM: what was finished is kept."""

    exit_code = 130
