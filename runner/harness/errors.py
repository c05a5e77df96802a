"""The failure of a cell, with its class."""


class CellFailure(Exception):
    """Ends a cell without a time.

    Attributes:
        kind: the failure class, ``wrong-result`` for example.
        reason: one line for the record.
        facts: what was learnt before the failure; it goes into the record too.
    """

    def __init__(self, kind, reason, facts=None):
        Exception.__init__(self, reason)
        self.kind = kind
        self.reason = reason
        self.facts = facts or {}
