"""Faults that the program does not survive yet: id -> the part that has to change, and what happens today."""

PENDING: dict[str, str] = {}
