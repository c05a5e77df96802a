"""What the compiler of a framework did to a program while it was built, called and timed, as far as it counts that.

Calls whose results are checked are left out: a compiler compiles anew for inference, or for another precision.
"""

from collections import Counter

GRAPHS, BREAKS, AGAIN, REASONS = "compiled_graphs", "graph_breaks", "recompilations", "graph_break_reasons"
"""Facts: how many graphs were compiled, how often one was broken and why, how often code was compiled again."""
MAX_REASONS = 5  # that a record has
REASON_LENGTH = 200  # characters


class Compilations(object):
    """Adds up what is counted in some spans of time; the first one begins with this object."""

    def __init__(self, counts: "object") -> "None":
        """Begin a span.

        Args:
            counts: returns what the framework has counted since the process began: GRAPHS and AGAIN -> a number, if it is
                known, and BREAKS -> a mapping from reasons to numbers; nothing as long as no compiler was used.
        """
        self.counts = counts
        self.added = {}
        self.before = self.read()

    def read(self) -> "dict":
        """Return what is counted now; nothing where a release counts it in another way."""
        try:
            return self.counts()
        except Exception:  # private interfaces of a framework, which no cell should fail for
            return {}

    def begin(self) -> "None":
        """Begin a span."""
        self.before = self.read()

    def end(self) -> "None":
        """End a span: what was counted in it is added; the next one begins."""
        now = self.read()
        for name, value in now.items():
            before = self.before.get(name, {} if name == BREAKS else 0)
            if name == BREAKS:
                more = {reason: value[reason] - before.get(reason, 0) for reason in value}
                value = Counter({reason: count for reason, count in more.items() if count > 0})
                self.added[name] = self.added.get(name, Counter()) + value
            else:
                self.added[name] = self.added.get(name, 0) + max(0, value - before)
        self.before = now

    def facts(self) -> "dict":
        """Return the facts; none where no compiler was used."""
        facts = dict(self.added)
        if BREAKS in facts:
            reasons = facts[BREAKS]
            facts[BREAKS] = sum(reasons.values())
            facts[REASONS] = [first_line(reason) for reason, _ in reasons.most_common(MAX_REASONS)]
        return facts


def first_line(text: "str") -> "str":
    """Return the first line of a reason, not more than REASON_LENGTH characters."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[0][:REASON_LENGTH] if lines else "no reason is given"
