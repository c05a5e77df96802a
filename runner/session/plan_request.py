"""The request to the planner: what the user selected, and how it is measured."""

import difflib
import random
from collections.abc import Sequence
from typing import get_args

from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.machine import Capacity
from runner.core.model import Device, Gpu, Precision, Request
from runner.core.units import MAX_SECONDS, parse_duration
from runner.matrix import Matrix, choose_cells, select_environments
from runner.matrix.cell_globs import refuse_impossible
from runner.matrix.select import environments_named
from runner.plan import corpus
from runner.session.options import Options
from runner.session.typed_variants import typed_threads

CLOSE = 0.8
"""The similarity, from 0 to 1, from which a name that does not exist is taken for a typing mistake."""


def plan_request(
    options: Options, matrix: Matrix, backend: str, device: tuple[Device, Sequence[Gpu]], capacity: Capacity
) -> Request:
    """Return the request to the planner, with the selection resolved.

    Args:
        options: what the user typed.
        matrix: the checked matrix.
        backend: the name of the chosen backend.
        device: ``cpu`` or ``cuda``, and the GPUs.
        capacity: cores, memory and C library of the machine.

    Raises:
        UsageError, NothingSelectedError: the corpus, the preset, the seconds or the selection are wrong.
    """
    for kind, name, known in (
        *(("preset", name, tuple(matrix.presets)) for name in (options.preset,) if name),
        *(("workload", name, tuple(matrix.workloads)) for name in options.workload or ()),
        *(("phase", name, matrix.phase_names) for name in options.phase or ()),
        *(("precision", name, get_args(Precision)) for name in options.precision or ()),
    ):
        if name not in known:
            close = difflib.get_close_matches(name, known, 1, CLOSE)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise UsageError(Problem(f"there is no {kind} {name!r}", hint=hint))
    if options.seconds is not None and not options.seconds <= MAX_SECONDS:  # typer's limits let NaN pass
        raise UsageError(Problem(f"--seconds {options.seconds} is not a time", hint="write --seconds 2"))
    gpus, environments = device[1], _environments(matrix, options.selectors or ())
    refuse_impossible(matrix, options.selectors or ())
    return Request(
        environments=environments,
        named=_named(matrix, environments, options.selectors or ()),
        chosen=choose_cells(matrix, options.selectors) if options.selectors else None,
        cell_selectors=tuple(selector for selector in options.selectors or () if "/" in selector),
        workloads=tuple(options.workload or ()),
        preset=options.preset,
        phases=tuple(dict.fromkeys(options.phase or ())),
        precisions=tuple(dict.fromkeys(options.precision or ())),
        device=device[0],
        backend=backend,
        rounds=options.rounds,
        max_rounds=options.max_rounds,
        budget=parse_duration(options.budget) if options.budget else None,
        seconds=options.seconds,
        threads=next(iter(typed_threads(options)), None) or matrix.measure.threads or capacity.each(len(gpus)),
        devices=max(1, len(gpus)),
        seed=random.randrange(1 << 31) if options.seed is None else options.seed,
        process=options.process,
        protocol=options.protocol,
        memory=gpus[0].memory if gpus else capacity.memory,
        corpus=corpus.read(options.corpus) if options.corpus else None,
        allow_jit=options.allow_jit,
        glibc=capacity.glibc,
    )


def _environments(matrix: Matrix, selectors: Sequence[str]) -> tuple[str, ...]:
    """Return the selected environments in the order of the selectors, and in that of the file within each of them.

    The first of a framework is what others are compared with.
    """
    if not matrix.environments:
        raise NothingSelectedError("the matrix names no environment")
    names = select_environments(matrix, selectors)
    included = [environments_named(matrix, each) for each in selectors if not each.startswith("!")]

    def position(name: str) -> int:
        followed = matrix.follows.get(name, name)
        return next((index for index, named in enumerate(included) if followed in named), len(included))

    return tuple(sorted(names, key=position))


def _named(matrix: Matrix, environments: Sequence[str], selectors: Sequence[str]) -> frozenset[str]:
    """Return the environments whose id is a selector, or the first part of one."""
    words = {selector.partition("/")[0] for selector in selectors}
    return frozenset(name for name in environments if matrix.follows.get(name, name) in words)
