"""What is measured to know the noise: an environment beside itself, and a product that no environment touches.

``ENVIRONMENT@twin`` is the same image on a server of its own. Whatever sets the two apart is no difference of releases.
"""

from collections.abc import Mapping
from dataclasses import replace

from runner.core.model import Block, Cell, Plan, PlannedCell, Provisioned
from runner.core.model.cells import is_twin, twin, without_twin


def with_twins(plan: Plan) -> Plan:
    """Return the plan with an A/A pair in each block: the first cell of it and its twin.

    A block of one cell compares nothing, and gets none.
    """
    blocks = tuple(
        replace(block, cells=(*block.cells, twin(block.cells[0]))) if len(block.cells) > 1 else block
        for block in plan.blocks
    )
    known = {planned.cell: planned for planned in plan.cells}
    added = tuple(_planned(known, block) for block in blocks if is_twin(block.cells[-1].environment))
    names = {planned.cell.environment: plan.frameworks[without_twin(planned.cell.environment)] for planned in added}
    return replace(plan, blocks=blocks, cells=plan.cells + added, frameworks={**plan.frameworks, **names})


def _planned(known: Mapping[Cell, PlannedCell], block: Block) -> PlannedCell:
    return replace(known[block.cells[0]], cell=block.cells[-1])


def provisioned(plan: Plan, ready: Mapping[str, Provisioned]) -> dict[str, Provisioned]:
    """Return the environments that could be made, with the twins of a plan among them."""
    twins = [name for name in plan.frameworks if is_twin(name) and without_twin(name) in ready]
    return {**ready, **{name: replace(ready[without_twin(name)], environment=name) for name in twins}}
