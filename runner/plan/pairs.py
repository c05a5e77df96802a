"""Plans that pair environments in a single run: one as it was with one as it is, and one with itself.

An environment measured against itself, an A/A pair, shows how much of a difference is noise. The twin of an
environment, ``ENVIRONMENT@twin``, is the same image with a server of its own: no difference comes from the releases.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from runner.core.model import Block, Cell, Past, Plan, PlannedCell, Provisioned
from runner.core.model.cells import is_called, is_control, is_twin, plain, twin, without_control

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
        launches={earlier: before.launch_of(next(iter(before.frameworks))), **now.launches},
        past=Past(),
    )


def with_controls(plan: Plan) -> Plan:
    """Return the plan with its controls: an A/A pair in each block, and the cells that plain processes repeat."""
    return with_plain(with_twins(plan))


def with_plain(plan: Plan) -> Plan:
    """Return the plan with a plain-process control of each cell that another environment is compared with.

    A control is left out where its phase has a fresh process anyway, and where the budget has no room for it by the
    estimates. A plan that measures everything in plain processes needs none.
    """
    if plan.measurement.process == "plain":
        return plan
    planned_by_cell = {planned.cell: planned for planned in plan.cells}
    blocks: list[Block] = []
    cells, frameworks = list(plan.cells), dict(plan.frameworks)
    for block in plan.blocks:
        partners = _Partners(block, plan, planned_by_cell)
        controls = [_planned_control(planned_by_cell[cell]) for cell in partners.cells if any(partners.of(cell))]
        if not _fits(plan, cells, controls):
            controls = []
        cells += controls
        blocks.append(replace(block, cells=(*block.cells, *(each.cell for each in controls))))
        names = [each.cell.environment for each in controls]
        frameworks |= {name: plan.frameworks[without_control(name)] for name in names}
    return replace(plan, blocks=tuple(blocks), cells=tuple(cells), frameworks=frameworks)


def _planned_control(original: PlannedCell) -> PlannedCell:
    """Return the plan of a cell's plain-process control."""
    return replace(original, cell=plain(original.cell), seconds=original.control_seconds, control_seconds=0.0)


def compared_cells(plan: Plan) -> dict[Cell, frozenset[Cell]]:
    """Return the cells that other environments have partners for -> these partners; no controls are among them.

    They are those that a run compares a cell with: of its framework, and of others only where that has none.
    """
    planned_by_cell = {planned.cell: planned for planned in plan.cells}
    compared: dict[Cell, frozenset[Cell]] = {}
    for block in plan.blocks:
        partners = _Partners(block, plan, planned_by_cell)
        for cell in partners.cells:
            of_cell = frozenset(partners.of_framework(cell)) or frozenset(partners.of(cell))
            compared |= {cell: of_cell} if of_cell else {}
    return compared


class _Partners:
    """The cells of a block that can be compared with those of other environments.

    Partners in one framework have one implementation, and partners in two are of one kind. What several processes
    compute together is left out.

    Attributes:
        cells: those of phases with many calls, without controls.
    """

    def __init__(self, block: Block, plan: Plan, planned_by_cell: Mapping[Cell, PlannedCell]) -> None:
        """Group the cells of a block of a plan."""
        is_alone = block.chips == 1
        self.cells = [
            each for each in block.cells if is_alone and is_called(each.phase) and not is_control(each.environment)
        ]
        self._frameworks, self._planned = plan.frameworks, planned_by_cell
        self._by_implementation: dict[tuple[str, ...], list[Cell]] = {}
        self._by_kind: dict[tuple[str, ...], list[Cell]] = {}
        for cell in self.cells:
            self._by_implementation.setdefault(self._implementation(cell), []).append(cell)
            self._by_kind.setdefault(self._kind(cell), []).append(cell)

    def _implementation(self, cell: Cell) -> tuple[str, ...]:
        return cell.phase, cell.precision, self._frameworks[cell.environment], cell.implementation

    def _kind(self, cell: Cell) -> tuple[str, ...]:
        return cell.phase, cell.precision, self._planned[cell].kind

    def of_framework(self, cell: Cell) -> Iterator[Cell]:
        """Yield the partners of a cell in the other environments of its framework."""
        for other in self._by_implementation[self._implementation(cell)]:
            if other.environment != cell.environment:
                yield other

    def of(self, cell: Cell) -> Iterator[Cell]:
        """Yield the partners of a cell."""
        framework = self._frameworks[cell.environment]
        yield from self.of_framework(cell)
        for other in self._by_kind[self._kind(cell)]:
            if self._frameworks[other.environment] != framework:
                yield other


def _fits(plan: Plan, cells: Sequence[PlannedCell], controls: Sequence[PlannedCell]) -> bool:
    """Return whether the budget of a plan has room for cells and controls, by their estimates."""
    budget = plan.measurement.budget
    return budget is None or replace(plan, cells=(*cells, *controls)).seconds <= budget


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
    return replace(planned_by_cell[block.cells[0]], cell=block.cells[-1], control_seconds=0.0)


def add_controls(plan: Plan, ready: Mapping[str, Provisioned]) -> dict[str, Provisioned]:
    """Return the provisioned environments and those of the plan's controls, which share the image of their original."""
    controls = [name for name in plan.frameworks if is_control(name) and without_control(name) in ready]
    return {**ready, **{name: replace(ready[without_control(name)], environment=name) for name in controls}}
