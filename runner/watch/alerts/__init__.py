"""Alerts about confirmed regressions: a message when one starts, one when it ends, and an issue body for it.

- ``targets`` reads who gets them, from the environment or a private file.
- ``state`` derives the open alerts from the stored nights, and ``actions`` what tonight changes.
- ``message`` collects what is known about an alert and writes it down, ``sending`` delivers it.
- ``delivery`` does all of it at the end of a night; ``overview`` is what `runner alerts` shows.
"""

from runner.watch.alerts.delivery import Delivery, targets_of_night

__all__ = ["Delivery", "targets_of_night"]
