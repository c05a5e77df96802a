"""A note on cells whose anchor is gone: did the medians of the nights themselves change their level?

The times of different nights did not take turns, so what they show may come from the machine. Hence it is a note, and
never a regression.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from runner.nights.looks import EarlierNights
from runner.nights.night import NightChange
from runner.report import formatting
from runner.stats.slower_level import slower_level

LEVEL = 0.01
"""The level of a night's test of a cell. Nights that did not take turns are not independent, so notes are more."""


def drift_notes(
    changes: Iterable[NightChange], seconds: Mapping[str, float], earlier: EarlierNights, margin: float
) -> Iterator[str]:
    """Yield a sentence for each cell without the environment of its anchor whose medians became slower.

    Args:
        changes: tonight's.
        seconds: id of a cell -> tonight's median.
        earlier: the earlier nights.
        margin: the relative change that counts as none.
    """
    for change in changes:
        name = change.cell
        if change.against != "anchor" or change.state != "environment-gone" or name not in seconds:
            continue
        nights = [night for night in earlier.seconds.get(name, ()) if night[0] >= change.before]
        medians = [*(median for _, median in nights), seconds[name]]
        slower = slower_level(np.log(medians), None, LEVEL)
        if slower and slower.ratio > 1 + margin:
            since = nights[slower.since][0] if slower.since < len(nights) else ""
            date = formatting.date(since)[:10] or "tonight"
            yield (
                f"{name}: the medians of {len(nights) + 1} nights are {slower.ratio - 1:.1%} slower since {date} "
                f"(p = {slower.p_value:.1g}); they did not take turns, so the machine may be the cause"
            )
