"""Make one plan of what the devices of several hosts offer, and the job of each block."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from runner.core.errors import NothingSelectedError, Problem, RecordError
from runner.core.model import Block, Measurement, ModelFiles, Past, Plan, PlannedCell
from runner.core.model.cells import without_control
from runner.core.model.variant_ids import Launch
from runner.hosts.tasks import BlockTask, Offer
from runner.hosts.waiting import QueuedBlock, runnable_by_kind
from runner.plan.document import plan_document, read_plan
from runner.plan.pairs import with_controls
from runner.store.events import BlockLease
from runner.store.shapes import value_of

_MEASUREMENT = TypeAdapter(Measurement)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """The plan of a run on several hosts.

    Attributes:
        plan: every cell, with the verdict ``run`` if some kind of device runs it.
        parts: kind of device -> case id -> the plan of that block alone, as the kind plans it.
        blocks: the blocks that have to be measured, by case.
    """

    plan: Plan
    parts: Mapping[str, Mapping[str, Plan]]
    blocks: Mapping[str, QueuedBlock]


def plan_for_hosts(
    offers: Iterable[Offer], *, controls: bool, models: Mapping[str, ModelFiles] = MappingProxyType({})
) -> HostPlan:
    """Return the plan of all kinds of devices together.

    Args:
        offers: one or more; of several of a kind, the first one counts.
        controls: add the controls: A/A pairs, and plain processes.
        models: digest -> the files of a user's network.

    Raises:
        NothingSelectedError: no device runs anything.
    """
    by_kind: dict[str, Plan] = {}
    for offer in offers:
        if offer.kind not in by_kind:
            plan = offered_plan(offer, models)
            by_kind[offer.kind] = with_controls(plan) if controls else plan
    parts = {kind: split_by_case(plan) for kind, plan in by_kind.items()}
    kinds = runnable_by_kind(
        {
            kind: {block.case_id: [cell.id for cell in block.cells] for block in plan.blocks}
            for kind, plan in by_kind.items()
        }
    )
    if not kinds:
        hint = "`runner plan` on one of them shows the reason for each test"
        raise NothingSelectedError(Problem("no device of any host can run anything of this", hint=hint))
    chosen = {case_id: next(kind for kind in by_kind if kind in able) for case_id, able in kinds.items()}
    blocks = {case_id: waiting({kind: parts[kind][case_id] for kind in able}) for case_id, able in kinds.items()}
    measured = tuple(parts[kind][case_id].blocks[0] for case_id, kind in chosen.items())
    return HostPlan(plan=_merged(by_kind, chosen, measured), parts=parts, blocks=blocks)


def offered_plan(offer: Offer, models: Mapping[str, ModelFiles] = MappingProxyType({})) -> Plan:
    """Return the plan of an offer; a device that offers none that can be read takes no part.

    Args:
        offer: what a worker has sent.
        models: digest -> the files of a user's network.

    Raises:
        RecordError: it is no plan, or its cells have cases that the offer does not describe.
    """
    try:
        measurement = value_of(offer.measurement, _MEASUREMENT)
        return read_plan(offer.plan, offer.cases, measurement, Past(), models)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(Problem(f"what it offers is no plan: {type(error).__name__} {error}")) from error


def split_by_case(plan: Plan) -> dict[str, Plan]:
    """Return case id -> the plan of the block of that case alone; the plan has no past."""
    cells: dict[str, list[PlannedCell]] = {block.case_id: [] for block in plan.blocks}
    for planned in plan.cells:
        if planned.cell.case_id in cells:
            cells[planned.cell.case_id].append(planned)
    return {block.case_id: replace(plan, blocks=(block,), cells=tuple(cells[block.case_id])) for block in plan.blocks}


def waiting(parts: Mapping[str, Plan]) -> QueuedBlock:
    """Return a block as one that waits for a device; ``parts`` has its plan for each kind of device that may get it."""
    (block,) = next(iter(parts.values())).blocks
    return QueuedBlock(
        case_id=block.case_id,
        seconds={kind: _seconds(part) for kind, part in parts.items()},
        environments=frozenset(map(without_control, block.environments)),
    )


def _seconds(part: Plan) -> float:
    cells = set(part.blocks[0].cells)
    return sum(planned.seconds for planned in part.cells if planned.cell in cells)


def _merged(by_kind: Mapping[str, Plan], chosen: Mapping[str, str], blocks: tuple[Block, ...]) -> Plan:
    """Return a plan with each block as the kind of device plans it that is chosen for its case."""
    first = next(iter(by_kind.values()))
    planned: dict[str, PlannedCell] = {}
    frameworks: dict[str, str] = {}
    launches: dict[str, Launch] = {}
    for kind, plan in by_kind.items():
        frameworks.update(plan.frameworks)
        launches.update(plan.launches)
        for cell in plan.cells:
            if cell.cell.id not in planned or chosen.get(cell.cell.case_id) == kind:
                planned[cell.cell.id] = cell
    return replace(first, cells=tuple(planned.values()), blocks=blocks, frameworks=frameworks, launches=launches)


def new_lease(case_id: str, number: int, offer: Offer) -> BlockLease:
    """Return a lease with a token of its own."""
    return BlockLease(
        case_id=case_id,
        number=number,
        token=secrets.token_hex(16),
        host=offer.host,
        device=offer.device,
        device_name=offer.device_name,
    )


def job(lease: BlockLease, part: Plan, project: bytes, options: Mapping[str, Any], run: str) -> BlockTask:
    """Return the job of a block.

    Args:
        lease: the block, and its token.
        part: the plan of the block alone, for the kind of the device.
        project: the archive of ``project.pack``.
        options: those of ``tasks.sent_options``.
        run: id of the driver's run.
    """
    # The driver keeps to the budget: a worker that kept to it, too, would give all of it to its block.
    measurement = {**asdict(part.measurement), "budget": None}
    return BlockTask(
        project=project,
        options=options,
        run=run,
        case_id=lease.case_id,
        lease=lease.number,
        token=lease.token,
        plan={**plan_document(part), "budget": None},
        cases={lease.case_id: part.blocks[0].spec},
        measurement=measurement,
    )
