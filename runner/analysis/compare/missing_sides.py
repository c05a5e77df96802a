"""Sides that cannot be compared: why, and the command that measures them."""

import difflib
import shlex
from collections.abc import Collection, Iterator, Sequence

from runner.analysis.compare.run_sides import Match, RunReader
from runner.analysis.of_run import split
from runner.catalog import published
from runner.core.errors import Problem, UsageError
from runner.core.model.cells import is_control
from runner.core.model.variant_ids import without_variant
from runner.core.text import enumerated


def refuse_unknown(runs: RunReader, requested: Sequence[str], known: Collection[str]) -> None:
    """Raise UsageError for sides that are in no run, in no matrix, and no releases that a command can measure."""
    names = {*runs.environments, *known}
    shown = sorted(name for name in names if not is_control(name))
    problems, strangers = [], []
    for name in requested:
        if not names or name in runs.published or not {name, without_variant(name)}.isdisjoint({*names, *runs.words}):
            continue
        releases = [each for each in shown if each.startswith(f"{name}-")]
        near = difflib.get_close_matches(name, [*shown, *published.figures_by_side()], n=1)
        if releases:
            hint = f"name a release: {', '.join(releases)}"
            problems.append(Problem(f"{name!r} is a framework, not an environment", hint=hint))
        elif near:
            problems.append(Problem(f"unknown environment {name!r}", hint=f"did you mean {near[0]!r}?"))
        else:
            strangers.append(repr(name))
    if strangers:
        plural = "s" if len(strangers) > 1 else ""
        hint = f"there are {', '.join(shown)}; a release is named as torch==2.9.1"
        problems.append(Problem(f"unknown environment{plural} {enumerated(strangers)}", hint=hint))
    if problems:
        raise UsageError(*problems)


def nothing_comparable(runs: RunReader, base: str, others: Sequence[str]) -> list[Problem]:
    """Return why none of the others can be compared with the base, and what to do."""
    measurable = [name for name in (base, *others) if name not in runs.published]
    missing = [name for name in measurable if not any(run.sides[name].measured for run in runs)]
    command = _command(runs, measurable)
    if missing:
        pronoun = {1: "it", 2: "both"}.get(len(measurable), "all")
        failures = {name: _failures(runs, name) for name in missing}
        messages = [f"{_word(runs, name)} has no measurements: {failures[name]}" for name in missing if failures[name]]
        absent = [_word(runs, name) for name in missing if not failures[name]]
        messages += [_not_measured(runs, absent)] if absent else []
        return [*map(Problem, messages[:-1]), Problem(messages[-1], hint=f"to measure {pronoun}: {command}")]
    cells = "; ".join(f"{name} has {_measured_cells(runs, name)}" for name in (base, *others))
    hint = "compare the fastest of each with --best"
    hint += f", or measure the same on all: {command}" if measurable else ""
    return [Problem(f"{base} and {', '.join(others)} have no measured test in common: {cells}", hint=hint)]


def _word(runs: RunReader, name: str) -> str:
    """Return how a command names an environment, which may be one of a certain run."""
    variant = split(name)[0]
    environment = without_variant(variant)
    return f"{runs.words.get(environment, environment)}{variant.removeprefix(environment)}"


def _not_measured(runs: RunReader, words: Sequence[str]) -> str:
    """Return the sentence about environments that no run includes."""
    names = [run.run for run in runs.already_read() if run.run]
    subject = f"run {names[0]} has not" if len(names) == 1 else "no kept run has"
    return f"{subject} measured {enumerated(words)}"


def _command(runs: RunReader, names: Sequence[str]) -> str:
    """Return the command that measures environments; what published sides have of their workloads takes hours."""
    workloads = sorted({cell.workload for side in runs.published.values() for cell in side.measured})
    options = f" {' '.join(f'--workload {name}' for name in workloads)} --budget 2h" if workloads else ""
    sides = dict.fromkeys(_word(runs, each) for each in names)
    return f"`runner run {shlex.join(sides)}{options}`"


def _failures(runs: RunReader, name: str) -> str:
    """Return the distinct failures and skips of an environment in the newest run that includes it; empty for none."""
    for run in runs:
        ends = list(dict.fromkeys(f"{code}: {reason}" for code, reason in run.sides[name].ends.values()))
        if ends:
            return "; ".join(ends[:3]) + (f"; and {len(ends) - 3} more" if len(ends) > 3 else "")
    return ""


def _measured_cells(runs: RunReader, name: str) -> str:
    """Return the measured cells of an environment in the newest run that has any."""
    for run in runs:
        if run.sides[name].measured:
            return _first_three({f"{cell.implementation} on {cell.case_id}" for cell in run.sides[name].measured})
    return "nothing"


def _first_three(texts: Collection[str]) -> str:
    """Return the first three in one line, and the number of the others."""
    first, others = sorted(texts)[:3], len(texts) - 3
    return ", ".join(first) + (f" and {others} more" if others > 0 else "")


def notes(runs: RunReader, match: Match | None, base: str, other: str) -> Iterator[str]:
    """Yield a sentence for each implementation or case that only one side has."""
    if match is None or not match.usable:
        if not any(run.sides[other].measured for run in runs):
            measurable = [name for name in (base, other) if name not in runs.published]
            pronoun = "both" if len(measurable) == 2 else "it"
            command = _command(runs, measurable)
            failures = _failures(runs, other)
            word = _word(runs, other)
            reason = f"{word} has no measurements: {failures}" if failures else _not_measured(runs, [word])
            yield f"{reason}; {command} measures {pronoun}"
        else:
            yield f"{base} and {other} have no measured test in common"
        return
    sides = (
        (match.base, {pair.base for pair in match.pairs}, match.other),
        (match.other, {pair.other for pair in match.pairs}, match.base),
    )
    for side, partners, lacking in sides:
        slugs, cases = {cell.implementation for cell in partners}, {cell.case_id for cell in partners}
        unmatched = [cell for cell in side.measured if cell not in partners]
        for slug in sorted({cell.implementation for cell in unmatched} - slugs):
            reasons = {lacking.ends[cell][1] for cell in lacking.skipped if cell.implementation == slug}
            yield f"only {side.environment} has {slug}" + (f": {', '.join(sorted(reasons))}" if reasons else "")
        unmatched_cases = {cell.case_id for cell in unmatched} - cases
        if unmatched_cases:
            yield f"only {side.environment} has {'' if side.figures else 'measured '}{_first_three(unmatched_cases)}"
