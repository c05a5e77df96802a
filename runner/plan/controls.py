"""Add A/A pairs to a plan: an environment measured against itself shows how much of a difference is noise.

The twin of an environment, ``ENVIRONMENT@twin``, is the same image with a server of its own. Both sides run the same
code, so no difference between them comes from the releases.
"""

from collections.abc import Mapping
from dataclasses import replace

from runner.core.model import Block, Cell, Plan, PlannedCell, Provisioned
from runner.core.model.cells import is_twin, twin, without_twin


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
        planned.cell.environment: plan.frameworks[without_twin(planned.cell.environment)] for planned in twins
    }
    return replace(plan, blocks=blocks, cells=plan.cells + twins, frameworks={**plan.frameworks, **frameworks})


def _planned_twin(planned_by_cell: Mapping[Cell, PlannedCell], block: Block) -> PlannedCell:
    """Return the plan of a block's last cell, the twin, copied from that of its first."""
    return replace(planned_by_cell[block.cells[0]], cell=block.cells[-1])


def add_twins(plan: Plan, ready: Mapping[str, Provisioned]) -> dict[str, Provisioned]:
    """Return the provisioned environments, with those of the plan's twins added; a twin shares its original's image."""
    twins = [name for name in plan.frameworks if is_twin(name) and without_twin(name) in ready]
    return {**ready, **{name: replace(ready[without_twin(name)], environment=name) for name in twins}}
