"""Which methods of a user's class fail in the base: a mistake in ``train`` costs the cells of ``forward`` nothing."""

import contextlib
import traceback

from ..errors import CellFailure

FAILS = "{}() fails in the base: {}"


class Attempts(object):
    """What the base tries of a class.

    Attributes:
        failures: phase -> why it gives no result, as a sentence.
    """

    def __init__(self, build: "object") -> "None":
        """Take the Builder, whose programs leave out from then on what has failed."""
        self.build, self.failures = build, {}

    @contextlib.contextmanager
    def of(self, phase: "str", other: "bool") -> "object":
        """Return the context in which results of a phase are made; a failure is kept, unless it leaves nothing.

        Args:
            phase: ``forward`` or ``train``.
            other: whether the other phase has, or may have, results.

        Raises:
            Exception: whatever the block raises, where ``other`` is False.
        """
        try:
            yield
        except (Exception, SystemExit) as error:
            if not other:
                raise
            traceback.print_exc()
            lines = str(error).strip().splitlines() or [""]
            reason = error.reason if isinstance(error, CellFailure) else "{}: {}".format(type(error).__name__, lines[0])
            self.failures[phase] = FAILS.format(phase, reason)
            case = self.build.case
            kept = [each for each in case["phases"] if each != phase]
            self.build.case = dict(case, phases=kept, fails=list(case.get("fails", ())) + [phase])
