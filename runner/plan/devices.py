"""Devices that work side by side: GPUs of one kind, each of which measures cases of its own.

A case is never split: all of its cells, and the pair that tells its noise, are measured on one GPU; but for a case that
wants several GPUs at once, which has all of them to itself.
"""

from dataclasses import replace

from runner.core.model import Block, Past, Plan


def apart(plan: Plan) -> tuple[Plan, Plan]:
    """Return the part of a plan that one device measures, and the part whose cases want several GPUs at once."""
    wide = [block for block in plan.blocks if plan.device == "cuda" and block.chips > 1]
    if not wide:
        return plan, _part(plan, [])
    return _part(plan, [block for block in plan.blocks if block not in wide]), _part(plan, wide)


def assign(plan: Plan, count: int) -> tuple[Plan, ...]:
    """Return the part of a plan that each of ``count`` devices measures, fewer where there are fewer cases.

    The longest case first, each to whoever has least to do by then (Graham 1969, at most 4/3 of the shortest time). The
    same plan is always dealt out in the same way, so that a resumed run goes on where it was.
    """
    if count < 2 or len(plan.blocks) < 2:
        return (plan,)
    seconds = {planned.cell: round(planned.seconds, 2) for planned in plan.cells}  # as plan.json has it
    costs = {block.case_id: sum(seconds[cell] for cell in block.cells) for block in plan.blocks}
    hands: list[list[Block]] = [[] for _ in range(min(count, len(plan.blocks)))]
    for block in sorted(plan.blocks, key=lambda block: (-costs[block.case_id], block.case_id)):
        min(hands, key=lambda hand: sum(costs[dealt.case_id] for dealt in hand)).append(block)
    return tuple(_part(plan, hand) for hand in hands)


def _part(plan: Plan, hand: list[Block]) -> Plan:
    """Return a plan with some of its blocks, in their order, and what of its past is theirs."""
    blocks = tuple(block for block in plan.blocks if block in hand)
    cases = {block.case_id for block in blocks}
    past = Past(
        finished=frozenset(block for block in plan.past.finished if block[0] in cases),
        attempts={key: last for key, last in plan.past.attempts.items() if key[0] in cases},
        failed=frozenset(failure for failure in plan.past.failed if failure[0].case_id in cases),
        servers=plan.past.servers,
        groups=plan.past.groups,
        elapsed=plan.past.elapsed,
    )
    cells = tuple(planned for planned in plan.cells if planned.cell.case_id in cases)
    return replace(plan, blocks=blocks, cells=cells, past=past)
