"""Plans that pair environments in a single run: one as it was with one as it is, and one with itself.

An environment measured against itself, an A/A pair, shows how much of a difference is noise. The twin of an
environment, ``ENVIRONMENT@twin``, is the same image with a server of its own: no difference comes from the releases.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from runner.core.model import Block, Cell, Past, Plan, PlannedCell, Provisioned
from runner.core.model.cells import is_twin, twin, without_control
from runner.core.variables import content_digest, digest_with

MAX_ROUNDS_IN_TURNS = 20
"""The limit of rounds in turns, while the verdict is open."""


def of_cells(plan: Plan, chosen: Collection[str]) -> Plan:
    """Return a plan with some of its cells alone, given by their ids, and without a budget."""
    cells = tuple(planned for planned in plan.cells if planned.cell.id in chosen)
    blocks = [replace(block, cells=tuple(cell for cell in block.cells if cell.id in chosen)) for block in plan.blocks]
    environments = {planned.cell.environment for planned in cells}
    return replace(
        plan,
        cells=cells,
        blocks=tuple(block for block in blocks if block.cells),
        frameworks={name: framework for name, framework in plan.frameworks.items() if name in environments},
        measurement=replace(plan.measurement, budget=None),
    )


def in_turns(before: Plan, now: Plan, earlier: str, min_rounds: int) -> Plan:
    """Return a plan that measures the cells of an environment as it was in turns with those of one as it is.

    Args:
        before: cells of one environment, whose settings count.
        now: the same cells of the other; it may be the same plan.
        earlier: what the environment as it was is called; it is the base.
        min_rounds: of each cell.
    """
    measured = before.measurement
    rounds = max(measured.rounds, min_rounds)

    def renamed(cell: Cell) -> Cell:
        return replace(cell, environment=earlier)

    cases = {block.case_id: block for block in now.blocks}
    blocks = tuple(
        replace(block, cells=(*map(renamed, block.cells), *cases[block.case_id].cells))
        for block in before.blocks
        if block.case_id in cases
    )
    in_blocks = {cell for block in blocks for cell in block.cells}

    def with_rounds(cell: PlannedCell, of: Plan) -> PlannedCell:
        return replace(cell, seconds=cell.seconds / of.measurement.rounds * rounds)

    cells = (
        *(with_rounds(replace(each, cell=renamed(each.cell)), before) for each in before.cells),
        *(with_rounds(each, now) for each in now.cells),
    )
    return replace(
        before,
        measurement=replace(measured, rounds=rounds, max_rounds=max(measured.round_limit, MAX_ROUNDS_IN_TURNS)),
        cells=tuple(each for each in cells if each.cell in in_blocks),
        blocks=blocks,
        frameworks={earlier: next(iter(before.frameworks.values())), **now.frameworks},
        starts={earlier: before.start_of(next(iter(before.frameworks))), **now.starts},
        past=Past(),
    )


def with_twins(plan: Plan) -> Plan:
    """Return the plan with an A/A pair in each block: the first cell of the block and its twin.

    A block of a single cell compares nothing and gets no pair.
    """
    blocks = tuple(
        replace(block, cells=(*block.cells, twin(block.cells[0]))) if len(block.cells) > 1 else block
        for block in plan.blocks
    )
    planned_by_cell = {planned.cell: planned for planned in plan.cells}
    twins = tuple(_planned_twin(planned_by_cell, block) for block in blocks if is_twin(block.cells[-1].environment))
    frameworks = {
        planned.cell.environment: plan.frameworks[without_control(planned.cell.environment)] for planned in twins
    }
    return replace(plan, blocks=blocks, cells=plan.cells + twins, frameworks={**plan.frameworks, **frameworks})


def _planned_twin(planned_by_cell: Mapping[Cell, PlannedCell], block: Block) -> PlannedCell:
    """Return the plan of a block's last cell, the twin, copied from that of its first."""
    return replace(planned_by_cell[block.cells[0]], cell=block.cells[-1])


def add_twins(plan: Plan, ready: Mapping[str, Provisioned]) -> dict[str, Provisioned]:
    """Return the provisioned environments, with those of the plan's twins added; a twin shares its original's image."""
    twins = [name for name in plan.frameworks if is_twin(name) and without_control(name) in ready]
    return {**ready, **{name: replace(ready[without_control(name)], environment=name) for name in twins}}


T = TypeVar("T")


def with_starts(plan: Plan, ready: Mapping[str, Provisioned], also: Collection[str] = ()) -> dict[str, Provisioned]:
    """Return the provisioned environments of a plan as they are started: with their variables, which identify them too.

    Environments that differ in those alone share what was provisioned. Those in ``also`` have their variables already.
    """
    started = dict(ready)
    for name, image in _of_images(plan, ready).items():
        if name in also:
            continue
        variables = plan.start_of(name).variables
        digest = digest_with(content_digest(image.digest), variables)
        started[name] = replace(image, environment=name, variables=variables, digest=digest)
    return {name: environment for name, environment in started.items() if name in plan.frameworks}


def failed_starts(plan: Plan, failed: Mapping[str, T]) -> dict[str, T]:
    """Return what failed, also for the environments of a plan that share what could not be provisioned."""
    return {**failed, **_of_images(plan, failed)}


def _of_images(plan: Plan, by_image: Mapping[str, T]) -> dict[str, T]:
    """Return what is known of an image for each environment that is started in a way of its own."""
    images = {name: start.image or name for name, start in plan.starts.items()}
    return {name: by_image[image] for name, image in images.items() if image in by_image}
