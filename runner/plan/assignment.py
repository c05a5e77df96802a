"""Share the cases of a plan between GPUs of one kind that measure in parallel.

A case is never split: all its cells, the A/A pair included, run on the same GPU, so that a comparison never crosses
boards. A case that several GPUs compute together has all of them to itself.
"""

from dataclasses import replace

from runner.core.model import Block, Past, Plan


def split_multi_gpu(plan: Plan) -> tuple[Plan, Plan]:
    """Return two plans: the cases that one device computes, and those that several GPUs compute together.

    On a CPU the second is always empty.
    """
    multi_gpu = [block for block in plan.blocks if plan.device == "cuda" and block.chips > 1]
    if not multi_gpu:
        return plan, with_blocks(plan, [])
    return with_blocks(plan, [block for block in plan.blocks if block not in multi_gpu]), with_blocks(plan, multi_gpu)


def assign(plan: Plan, count: int) -> tuple[Plan, ...]:
    """Return one plan for each of ``count`` devices; fewer plans if there are fewer cases.

    Each case, the longest first, goes to the device with the least work so far (longest processing time first, Graham
    1969, SIAM J. Appl. Math. 17(2): at most 4/3 of the shortest possible time). Equal plans get equal assignments, so
    that a resumed run finds each case on the same device.
    """
    if count < 2 or len(plan.blocks) < 2:
        return (plan,)
    seconds = {planned.cell: round(planned.seconds, 2) for planned in plan.cells}  # rounded as in plan.json
    costs = {block.case_id: sum(seconds[cell] for cell in block.cells) for block in plan.blocks}
    assigned: list[list[Block]] = [[] for _ in range(min(count, len(plan.blocks)))]
    for block in sorted(plan.blocks, key=lambda block: (-costs[block.case_id], block.case_id)):
        min(assigned, key=lambda blocks: sum(costs[other.case_id] for other in blocks)).append(block)
    return tuple(with_blocks(plan, blocks) for blocks in assigned)


def with_blocks(plan: Plan, kept: list[Block]) -> Plan:
    """Return the plan with some of its blocks only, in the plan's order, with their cells and their past."""
    blocks = tuple(block for block in plan.blocks if block in kept)
    cases = {block.case_id for block in blocks}
    past = Past(
        finished=frozenset(case_round for case_round in plan.past.finished if case_round[0] in cases),
        attempts={key: last for key, last in plan.past.attempts.items() if key[0] in cases},
        failed=frozenset(failure for failure in plan.past.failed if failure[0].case_id in cases),
        servers=plan.past.servers,
        groups=plan.past.groups,
        elapsed=plan.past.elapsed,
        batches={key: batch for key, batch in plan.past.batches.items() if key[0].case_id in cases},
        seconds={cell: seconds for cell, seconds in plan.past.seconds.items() if cell.case_id in cases},
        signs={key: each for key, each in plan.past.signs.items() if key[0].case_id in cases},
        disturbed=frozenset(each for each in plan.past.disturbed if each[0].case_id in cases),
    )
    cells = tuple(planned for planned in plan.cells if planned.cell.case_id in cases)
    return replace(plan, blocks=blocks, cells=cells, past=past)
