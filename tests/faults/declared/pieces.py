"""Pieces of a run folder that are damaged between run and resume."""

from tests.faults.fault import Fault, Kept

FOLDER = "Pieces of a run, damaged between run and resume"


def _piece(name: str, what: str, exits: tuple[int, ...], kept: Kept, *sees: str) -> Fault:
    """Return a fault of a run folder that is damaged between run and resume."""
    return Fault(id=f"piece-{name}", group=FOLDER, what=what, exits=exits, kept=kept, sees=sees)


FOLDER_FAULTS = (
    _piece("plan-removed", "`plan.json` is removed", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("plan-cut", "`plan.json` is cut in half", (6,), Kept.UNCHANGED, "plan.json"),
    _piece("journal-cut", "the last line of the journal is cut", (0,), Kept.COMPLETE, "the last line was cut off"),
    _piece("journal-removed", "the journal is removed", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("journal-empty", "the journal is empty", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("journal-garbage", "a line in the journal's middle is garbage", (0,), Kept.COMPLETE, "journal.jsonl:2"),
    _piece("journal-doubled", "a line of the journal is there twice", (0,), Kept.COMPLETE, "resuming run "),
    _piece("record-removed", "a record is removed", (0,), Kept.COMPLETE, "1 record is damaged and left out"),
    _piece("record-cut", "a record is cut in half", (0,), Kept.COMPLETE, "1 record is damaged and left out"),
    _piece("cases-removed", "`cases.json` is removed", (6,), Kept.UNCHANGED, "cases.json"),
    _piece("environments-removed", "`environments.json` is removed", (6,), Kept.UNCHANGED, "environments.json"),
    _piece("records-file", "the folder of the records is a file", (6,), Kept.UNCHANGED, "records"),
    _piece("lock-folder", "`.lock` is a folder", (2, 6), Kept.UNCHANGED, ".lock"),
    _piece("newer", "a newer program wrote the plan", (6,), Kept.UNCHANGED, "plan.json"),
)
