"""What the first steps leave behind, as a part of a reference: the state, and the outputs then, of a framework.

Frameworks name their states differently, and compute running means by rules of their own. So the releases of a
framework are compared with one of them, whatever has made the rest of the reference.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from runner.core.model import Cell
from runner.core.model.cells import is_control
from runner.harness.model import blob
from runner.measure.reference_groups import NetworkProgram, Reference

GROUPS = ("after", "trained")  # of the arrays of a reference, see ``harness.model.reference.compute``
WIDER = ("state", "trained")  # of its facts: the errors that are allowed to these arrays


def candidates(cells: Iterable[Cell]) -> dict[NetworkProgram, Cell]:
    """Return the programs that may make this part, in order; none if nothing would be compared with it.

    Args:
        cells: of one case, precision and framework, in the order of the plan.
    """
    programs: dict[NetworkProgram, Cell] = {}
    for cell in cells:
        if cell.phase == "train" and not is_control(cell.environment):
            programs.setdefault(NetworkProgram.of(cell), cell)
    return dict(list(programs.items())[:-1])


def lacks_steps(reference: Reference, framework: str) -> bool:
    """Return whether another framework has made a reference whose steps were seen."""
    facts = reference.description["facts"]
    return facts["framework"] != framework and facts["by"] != "shapes" and bool(facts["losses"])


def with_steps(reference: Reference, traced: Reference, path: Path) -> Reference:
    """Return a reference with what the steps leave behind from another one.

    Args:
        reference: by any framework.
        traced: by the framework whose environments are compared with the result.
        path: of a new file for the arrays.
    """
    with path.open("wb") as file:
        lines = _copy(reference, lambda group: group not in GROUPS, file)
        lines += _copy(traced, lambda group: group in GROUPS, file)
    facts, traced_facts = reference.description["facts"], traced.description["facts"]
    wider = {name: facts["wider"][name] for name in facts["wider"] if name not in WIDER}
    wider.update({name: traced_facts["wider"][name] for name in WIDER if name in traced_facts["wider"]})
    changed = {name: traced_facts[name] for name in ("framework", "no_update", "repeats")}
    description = {"facts": {**facts, **changed, "wider": wider, "trained_base": traced.base}, "arrays": lines}
    return reference._replace(key=f"{reference.key}+{traced.key}", description=description, path=path)


def base(reference: Reference) -> str:
    """Return what has made the part of a reference that the first steps leave behind."""
    return str(reference.description["facts"].get("trained_base", reference.base))


def _copy(reference: Reference, chosen: Callable[[str], bool], file: IO[bytes]) -> list[Mapping[str, Any]]:
    """Append the arrays of the chosen groups to a file; return their lines of the index."""
    lines = []
    with reference.path.open("rb") as source:
        for line in reference.description["arrays"]:
            size = blob.line_bytes(line["dtype"], line["shape"])
            if chosen(line["group"]):
                lines.append(line)
                file.write(source.read(size))
            else:
                source.seek(size, os.SEEK_CUR)
    return lines
