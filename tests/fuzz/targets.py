"""The targets: what an input is given to. Each raises an error for people, or what the program should not raise."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.databases import run_database
from tests.fuzz.folders import run_folder
from tests.fuzz.models import run_model, run_typed
from tests.fuzz.plans import run_machine, run_matrix, run_planning
from tests.fuzz.runs import run_session
from tests.fuzz.wire import run_wire

TARGETS: dict[str, Callable[[Any], None]] = {
    "matrix": run_matrix,
    "planning": run_planning,
    "machine": run_machine,
    "document": run_folder,
    "folder": run_folder,
    "wire": run_wire,
    "session": run_session,
    "database": run_database,
    "model": run_model,
    "typed": run_typed,
}
CORPORA = Path(__file__).parent / "corpora"


def to_bytes(value: Any) -> bytes:
    """Return an input as the content of a file."""
    return value if isinstance(value, bytes) else json.dumps(value, indent=1).encode() + b"\n"


def from_bytes(target: str, content: bytes) -> Any:
    """Return the input in a file."""
    return content if target in {"matrix", "machine", "model"} else json.loads(content)


def corpus(target: str, folder: Path = CORPORA) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each kept input."""
    for path in sorted((folder / target).glob("*")):
        yield path.stem, from_bytes(target, path.read_bytes())
