"""The nodes of Slurm that get no more jobs, because they fail them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_FAILURES = 2
"""Jobs that a node may fail one after the other before it gets no more."""


@dataclass(slots=True)
class Nodes:
    """Counts the jobs that nodes fail.

    Attributes:
        say: takes sentences for the user.
        failures: node -> jobs that it has failed since its last good one.
        excluded: the nodes that get no more jobs.
    """

    say: Callable[[str], None]
    failures: Counter[str] = field(default_factory=Counter)
    excluded: list[str] = field(default_factory=list)

    def count(self, node: str, *, good: bool) -> None:
        """Note how a job ended; a node whose name is not known yet is empty, and does not count."""
        if not node or node in self.excluded:
            return
        self.failures[node] = 0 if good else self.failures[node] + 1
        if self.failures[node] >= MAX_FAILURES:
            self.excluded.append(node)
            self.say(f"{node} gets no more jobs: it failed {MAX_FAILURES} one after the other")

    @property
    def options(self) -> tuple[str, ...]:
        """The options of ``sbatch`` that keep jobs away from the excluded nodes."""
        return (f"--exclude={','.join(self.excluded)}",) if self.excluded else ()
