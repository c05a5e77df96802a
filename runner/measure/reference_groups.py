"""Which cells of a user's network share a reference, and which programs may make it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runner.core.model import Block, Cell
from runner.core.model.cells import is_own_phase
from runner.harness import cases

NUMPY = "numpy"


class ReferenceGroup(NamedTuple):
    """Cells that share a reference: of one case and precision, and one framework unless the file gives the weights.

    A phase that the file names itself has a reference of its own; ``method`` is empty for all other phases.
    """

    case_id: str
    precision: str
    framework: str
    method: str


class NetworkProgram(NamedTuple):
    """What an environment runs of a case: one variant of a network, or the network if it has none.

    A phase that the file names itself is verified apart; ``method`` is empty for all other phases.
    """

    case_id: str
    environment: str
    implementation: str
    method: str

    @classmethod
    def of(cls, cell: Cell) -> "NetworkProgram":
        """Return the program of a cell."""
        return cls(cell.case_id, cell.environment, cell.implementation, own_method(cell))


class Traceable(NamedTuple):
    """A program that can make a reference.

    Attributes:
        program: where it failed, this is known by its program.
        cell: of the environment that runs it.
        is_guest: it is the file's ``NumpyModel``, run by the NumPy of an environment of another framework.
    """

    program: NetworkProgram
    cell: Cell
    is_guest: bool = False


def in_order(
    programs: Mapping[NetworkProgram, Cell],
    group: ReferenceGroup,
    spec: Mapping[str, Any],
    frameworks: Mapping[str, str],
) -> list[Traceable]:
    """Return the programs of a group in the order in which they try to make its reference: NumPy first.

    If NumPy is not among the programs, a file's ``NumpyModel`` tries in each environment, unless all its variants have
    bounds of releases: which NumPy an environment of another framework has is not known.

    Args:
        programs: program -> a cell of it, in the order of the plan.
        group: they share its reference.
        spec: of the case.
        frameworks: environment -> its framework.
    """
    ordered = [Traceable(program, cell) for program, cell in programs.items()]
    if group.framework or NUMPY not in spec["takes_weights"]:
        return ordered
    ordered.sort(key=lambda each: frameworks[each.cell.environment] != NUMPY)
    if not ordered or frameworks[ordered[0].cell.environment] == NUMPY:
        return ordered
    if spec.get("variants", {}).get(NUMPY) and guest_variant(spec) is None:
        return ordered
    cells = {each.cell.environment: each for each in reversed(ordered)}
    guests = [cells[name] for name in dict.fromkeys(each.cell.environment for each in ordered)]
    return [
        *(Traceable(each.program._replace(implementation=NUMPY), each.cell, is_guest=True) for each in guests),
        *ordered,
    ]


class Reference(NamedTuple):
    """A reference that an environment has made.

    Attributes:
        environment: the environment; empty for NumPy in an environment of another framework.
        implementation: the variant that it ran, or ``model``.
        base: both, for messages.
        key: of the reference, in requests to servers.
        description: ``facts`` and ``arrays``, the index, as the server gave them.
        path: the file with the bytes of all arrays.
    """

    environment: str
    implementation: str
    base: str
    key: str
    description: Mapping[str, Any]
    path: Path


def guest_variant(case: Mapping[str, Any]) -> str | None:
    """Return the first variant of a ``NumpyModel`` that every release has; None if it has none."""
    variants = case.get("variants", {}).get(NUMPY, ())
    return next((each["name"] for each in variants if not each["since"] and not each["before"]), None)


def as_guest(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the case of a request with the variant of its ``NumpyModel`` that a guest runs, or none."""
    plain = {name: case[name] for name in case if name != "variant"}
    variant = guest_variant(case)
    return plain if variant is None else {**plain, "variant": variant}


def is_complete(traceable: Traceable, reference: Reference) -> bool:
    """Return whether a reference has all phases, and of a guest, arrays that are small enough to travel."""
    facts = reference.description["facts"]
    return not facts["fails"] and not (traceable.is_guest and facts["by"] == "shapes")


def own_method(cell: Cell) -> str:
    """Return the method of a cell whose phase the model file names itself; empty for any other cell."""
    return cell.phase if is_own_phase(cell.phase) else ""


def key(block: Block, group: ReferenceGroup) -> str:
    """Return the key of a reference in requests to servers."""
    return "-".join(filter(None, (cases.key(dict(block.spec)), group.precision, group.framework, group.method)))
