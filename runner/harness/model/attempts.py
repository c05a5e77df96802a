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
            Exception: whatever the block raises, where ``other`` is False; and a ``wrong-result``: what changes its shapes from
                call to call cannot be measured at all.
        """
        try:
            yield
        except (Exception, SystemExit) as error:
            if not other or getattr(error, "kind", "") == "wrong-result":
                raise
            traceback.print_exc()
            lines = str(error).strip().splitlines() or [""]
            reason = error.reason if isinstance(error, CellFailure) else "{}: {}".format(type(error).__name__, lines[0])
            self.failures[phase] = FAILS.format(phase, reason)
            self.build.case = without(self.build.case, [phase])


def without(case: "dict", phases: "list") -> "dict":
    """Return a case whose programs leave out phases that fail."""
    kept = [each for each in case["phases"] if each not in phases]
    return dict(case, phases=kept, fails=list(case.get("fails", ())) + list(phases))
