"""What a server answers."""

from tests.faults.fault import Fault, Kept

SERVER = "What a server answers"


def _server(name: str, what: str, *sees: str) -> Fault:
    """Return a fault of what a server answers; its environment fails, whatever it is."""
    exits, kept = (1,), Kept.FAILED
    return Fault(id=f"server-{name}", group=SERVER, what=what, exits=exits, kept=kept, sees=(*sees, "0 tests measured"))


SERVER_FAULTS = (
    _server("exits", "it ends before it reads", ": import: "),
    _server("dies", "it ends after it has read", ": import: "),
    _server("garbage", "it answers with bytes that are no text", ": import: "),
    _server("nested", "it answers with 200,000 opening brackets", ": import: "),
    _server("import", "it cannot import its framework", ": import: no module called numpy"),
    _server("no-status", "its answer has no status", ": "),
    _server("facts", "its facts are a number", ": "),
    _server("size", "its size is a text", ": "),
    _server("seconds", "its times are a number", ": "),
    _server("nan", "its times are NaN", ": "),
    _server("compile", "its compile time is a text", ": "),
    _server("measure-exits", "it ends in each measurement", ": crash: "),
    _server("escapes", "its reason has escape sequences of a terminal", ": crash: "),
)
