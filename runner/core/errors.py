"""The errors for people: a sentence, its position in a file, a hint, and the exit code of the program."""

import errno
from dataclasses import dataclass, replace

from runner.core.text import without_credentials


@dataclass(frozen=True, slots=True)
class Where:
    """A position in a file; line and column count from 1, ``width`` columns are underlined."""

    file: str
    line: int
    column: int
    text: str = ""
    width: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, and one thing to do about it."""

    message: str
    where: Where | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """Return the problem as a compiler prints it: position, line, carets, hint."""
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
    """An error that a person can act on; printed without a traceback."""

    exit_code = 1

    def __init__(self, *problems: Problem | str) -> None:
        """Take one or more problems; a string becomes a problem without place and hint."""
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)
        super().__init__("\n\n".join(str(p) for p in self.problems))


class MatrixError(RunnerError):
    """The matrix file is not valid."""

    exit_code = 2


class UsageError(RunnerError):
    """The command line names something that does not exist or is in use."""

    exit_code = 2


class NothingSelectedError(RunnerError):
    """No cell is selected."""

    exit_code = 3


class EngineError(RunnerError):
    """The container engine does not answer, or stopped answering."""

    exit_code = 4


class OutageError(RunnerError):
    """An index, a registry, a network or a disk does not give what a command needs; the same command goes on later."""

    exit_code = 4


class GpuError(RunnerError):
    """The GPU or its driver refuses, does not answer or does not exist."""

    exit_code = 5

    def __init__(self, *problems: Problem | str, kind: str = "") -> None:
        """Take the problems and, for an error of the driver, its kind, see ``runner.gpu.types.Kind``."""
        super().__init__(*problems)
        self.kind = kind


class RecordError(RunnerError):
    """A stored run cannot be read, or a newer program wrote it."""

    exit_code = 6


class GateError(RunnerError):
    """Tests break a condition of ``--fail-on``, or none was compared."""

    exit_code = 8


class NightRunningError(RunnerError):
    """Another night measures into the same reports folder; EX_TEMPFAIL of sysexits.h: try again later."""

    exit_code = 75


class HistoryError(RunnerError):
    """The database of the history cannot be opened, read or written, or a newer program wrote it."""

    exit_code = 6


class ProvisionError(RunnerError):
    """One environment could not be made; the run continues without it."""

    def __init__(self, code: str, *problems: Problem | str, log: str = "", passing: bool = False) -> None:
        """Take what failed, the problems, and the end of the log.

        Records and logs keep all of it, so users and passwords in addresses of package indexes and proxies are taken
        out.

        Args:
            code: ``image-build``, ``image-pull``, ``image-push``, ``lock`` or ``index``.
            problems: what is wrong.
            log: its last useful lines.
            passing: whether an outage is the cause, see ``core.outages``: nothing is known of what was to be got.
        """
        super().__init__(*map(_without_credentials, problems))
        self.code = code
        self.passing = passing
        self.log = without_credentials(log)


def _without_credentials(problem: Problem | str) -> Problem:
    if isinstance(problem, str):
        return Problem(without_credentials(problem))
    hint = problem.hint and without_credentials(problem.hint)
    return replace(problem, message=without_credentials(problem.message), hint=hint)


class InterruptedRunError(RunnerError):
    """Ctrl-C, SIGTERM or SIGHUP ended the command; finished results are kept."""

    exit_code = 130


class DamagedRunWarning(UserWarning):
    """A part of a stored run is damaged, and left out."""


FILE_HINTS = {
    errno.ENOENT: "check that its folder exists, and that nobody has removed it",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room within your quota",
    errno.EROFS: "choose a folder on a disk that is not read-only",
    errno.EACCES: "use a folder of yours, or ask its owner",
    errno.EPERM: "use a folder of yours, or ask its owner",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EEXIST: "something else has this name: move it away, or choose another path",
    errno.ENOTDIR: "a part of this path is a file: choose another path",
    errno.EISDIR: "this is a folder: name a file",
    errno.ELOOP: "its links lead in a circle",
    errno.EMFILE: "raise the limit of open files: `ulimit -n`",
    errno.ENFILE: "the machine has too many open files",
    errno.ENOMEM: "free memory",
    errno.EIO: "the disk may be failing: look into the kernel's log",
    errno.ESTALE: "the network folder is gone: mount it again",
}
"""Number of an OSError that a disk, a folder or its rights cause, and no bug of this program -> what to do."""


def file_problem(error: OSError, path: object = None, action: str = "written", then: str = "") -> Problem:
    """Return what could not be read or written, why, and what to do.

    Args:
        error: what the operating system reported.
        path: the file or folder, for an error that names none.
        action: ``written``, ``read`` or ``used``.
        then: what to do after that.
    """
    message = f"{error.filename or path or 'a file'} cannot be {action}: {error.strerror or error}"
    hint = FILE_HINTS.get(error.errno or 0, "" if not then else "remove the cause")
    return Problem(message, hint=", then ".join(filter(None, (hint, then))) or None)
