"""``runner compare --issue``: a comparison as the text of an issue, with the command that repeats it elsewhere."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.analysis.analyse import Analysis
from runner.analysis.comparison_model import Comparison
from runner.analysis.of_run import split
from runner.core.errors import Problem, UsageError
from runner.core.model import ModelFiles
from runner.core.model.cells import without_environment
from runner.core.model.variant_ids import THREADS, VARIABLES
from runner.matrix.wrapper import NamedModel, parse_model
from runner.releases.candidates import PACKAGES
from runner.releases.named import as_typed, parse_named, split_selector
from runner.report import issue
from runner.report.compared_rows import ComparedRow, compared_rows
from runner.report.issue import Repetition
from runner.session.options import Options
from runner.session.results import compared_runs, find_run
from runner.session.stored_options import typed
from runner.store.profile_files import read_profiles
from runner.store.run import Run

MAX_SELECTED_TESTS = 3
"""Tests that the command selects one by one; of more, it selects their workloads."""
MAX_SHOWN_BYTES = 20_000
"""Of the files of a network; larger ones are to be attached."""
LIBRARY_PACKAGES = {"hf": "transformers", "timm": "timm", "torchvision": "torchvision"}
"""Library that ``--model`` names -> the package that an environment needs for it."""


def issue_text(
    matrix: Path, reports: Path, names: Sequence[str], *, best: bool, run: str | None = None
) -> tuple[Comparison, str]:
    """Return a comparison, and the text of an issue about it as Markdown.

    Args:
        matrix: the matrix file.
        reports: the folder that holds the runs.
        names: the base and the others, as for ``results.comparison``.
        best: compare the fastest implementation of each side.
        run: compare in this run only; the newest by default.

    Raises:
        UsageError: there is no such environment or run, or the sides are of no single run.
        RunnerError: nothing can be compared, or the run cannot be read.
    """
    compared, runs = compared_runs(matrix, reports, names, best=best, run=run)
    if len(runs) != 1:
        hint = "measure them alternately, with `runner run` and both of them"
        raise UsageError(Problem("an issue is about releases that one run has measured", hint=hint))
    (analysis,) = runs.values()
    stored = find_run(reports, run if run and Path(run).is_dir() else analysis.dataset.run)
    cells = (planned.cell.id for planned in analysis.dataset.plan)
    profiles = dict(read_profiles(stored.path, cells))
    rows = issue.subjects(compared_rows([compared], compared.releases))
    return compared, issue.issue_text(compared, analysis, recipe(stored, compared, rows, analysis), profiles)


def recipe(stored: Run, compared: Comparison, rows: Sequence[ComparedRow], analysis: Analysis) -> Repetition:
    """Return how somebody else repeats some rows of a comparison in an empty folder.

    Args:
        stored: the run.
        compared: the comparison.
        rows: those to repeat.
        analysis: the run.
    """
    plan, header = stored.plan(), stored.journal().header
    options = typed(header, [cell["environment"] for cell in plan["cells"]])
    models, files, notes = _models(options, stored)
    environments = [compared.base, *dict.fromkeys(each.row.environment for each in rows)]
    packages = [LIBRARY_PACKAGES[each.library] for each in models if each.library in LIBRARY_PACKAGES]
    words = named_environments(environments, options.selectors or (), compared, analysis.dataset.environments, packages)
    if any(parse_named(split_selector(word)[1]) is None for word in words):
        notes = [*notes, "the environments are those of the matrix file of the run"]
    again = replace(
        _portable(options, plan, words),
        selectors=words if models else _selected(words, rows),
        workload=None if models or _few(rows) else sorted({each.row.workload for each in rows}),
        model=_texts(models, files) or None,
        protocol=options.protocol or ("published" if any("+published" in test for test in _tests(rows)) else None),
    )
    if again.corpus:
        notes = [*notes, f"{again.corpus} is the text of --corpus"]
    shown = _shown(files)
    notes = [*notes, *(f"attach {name}: it is too long to be shown" for name in files if name not in shown)]
    return Repetition(command=shlex.join(["matrix-runner", "run", *again.to_argv()]), files=shown, notes=tuple(notes))


def named_environments(
    environments: Sequence[str],
    selectors: Sequence[str],
    compared: Comparison,
    facts: Mapping[str, Mapping[str, Any]],
    packages: Sequence[str] = (),
) -> list[str]:
    """Return words that stand for environments on every machine: releases by their versions, ``torch==2.9.1``.

    Environments whose words would be the same, or of a framework that no package has, keep their ids.

    Args:
        environments: ids, each perhaps of a certain run.
        selectors: what was typed for the run; a release that was named is named as it was.
        compared: has the releases.
        facts: environment -> its facts.
        packages: beside the framework that the environments need.
    """
    ids = [split(name)[0] for name in environments]
    words = as_typed(ids, selectors)
    for index, (name, word) in enumerate(zip(ids, words, strict=True)):
        release, (_, _, rest) = compared.releases.get(environments[index]), split_selector(name)
        if word != name or release is None or release.framework not in PACKAGES:
            continue
        versions = facts.get(name, {}).get("packages") or {}
        others = [f",{each}=={versions[each]}" for each in packages if each in versions]
        exact = f"{PACKAGES[release.framework][0]}=={release.version}{''.join(others)}"
        words[index] = f"{exact}{rest}" if parse_named(exact) else name
    return words if len(set(words)) == len(words) else as_typed(ids, selectors)


def _portable(options: Options, plan: Mapping[str, Any], words: Sequence[str]) -> Options:
    """Return the options of a run without what only its machine, its folder and its matrix file have."""
    default, device = Options(), options.device
    in_words = "".join(words)  # variables and numbers of threads are a part of an environment's name
    return replace(
        options,
        matrix=default.matrix,
        reports=default.reports,
        preset=None,
        backend="auto",
        python=None,
        framework=None,
        name=default.name,
        device=device and (device if device.partition(":")[0] in ("cpu", "cuda") else "cuda"),
        rounds=int(plan.get("rounds") or 0) or None,
        seconds=float(plan.get("seconds") or 0) or None,
        budget=None,
        env=None if VARIABLES in in_words else options.env,
        threads=None if THREADS in in_words else options.threads,
        corpus=options.corpus and Path(options.corpus.name),
        busy_ok=False,
        traceback=False,
    )


def _few(rows: Sequence[ComparedRow]) -> bool:
    return len(_tests(rows)) <= MAX_SELECTED_TESTS


def _tests(rows: Sequence[ComparedRow]) -> list[str]:
    """Return the cells of rows without their environments, each once."""
    cells = (cell for each in rows for cell in (each.row.base, each.row.other))
    return list(dict.fromkeys(without_environment(cell.id) for cell in cells))


def _selected(words: Sequence[str], rows: Sequence[ComparedRow]) -> list[str]:
    """Return selectors of few tests, or of the environments."""
    return [f"{word}/{test}" for test in _tests(rows) for word in words] if _few(rows) else [*words]


def _models(options: Options, stored: Run) -> tuple[list[NamedModel], dict[str, str], list[str]]:
    """Return the networks of a run, the text of their files, and notes about files that are no text."""
    models, files, notes = list[NamedModel](), dict[str, str](), list[str]()
    for text in options.model or ():
        with suppress(UsageError):  # another version of the program took it
            models.append(parse_model(text))
    kept: Mapping[str, ModelFiles] = stored.models() if models else {}
    wrapped = all(model.is_wrapped for model in models)
    for each in kept.values():
        for name, content in each.files.items():
            if wrapped and name == each.entry:
                continue  # the program writes it anew
            try:
                files[name] = content.decode()
            except UnicodeDecodeError:
                notes.append(f"attach {name}, which is no text")
    return models, files, notes


def _texts(models: Iterable[NamedModel], files: Mapping[str, str]) -> list[str]:
    """Return the values of ``--model`` with their files in the folder where the command is typed."""
    texts = []
    for model in models:
        label = f"{model.label}=" if model.label else ""
        path = model.path.as_posix() if model.path else ""
        name = max((each for each in files if f"/{path}".endswith(f"/{each}")), key=len, default="")
        if path and not name and model.path and not model.is_wrapped and "model.py" in files:
            label, name = f"{model.workload}=", "model.py"  # a folder, which its workload is named after
        texts.append(label + (model.text.replace(path, name, 1) if name else model.text))
    return texts


def _shown(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that the issue has room for, the smallest first."""
    shown, room = dict[str, str](), MAX_SHOWN_BYTES
    for name, text in sorted(files.items(), key=lambda item: len(item[1])):
        if len(text) <= room:
            shown[name], room = text, room - len(text)
    return shown
