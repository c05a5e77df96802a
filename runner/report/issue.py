"""The text of an issue for the project of a framework: what changed, how sure that is, and the command to repeat it.

Its sections are those of ``report.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from runner.analysis.analyse import Analysis
from runner.analysis.comparison_model import Comparison
from runner.analysis.model_checks import UNCHECKED
from runner.analysis.releases import EnvironmentRelease
from runner.core.model.cells import environment_of, without_control
from runner.core.model.profiles import StepProfile
from runner.report import comparison_notes, formatting, markdown, profile_markdown, wording
from runner.report.accuracy import accuracy
from runner.report.answer import base_name, name
from runner.report.compared_rows import ComparedRow, compared_rows
from runner.report.controls_table import control_lines
from runner.report.formatting import counted
from runner.report.markdown_text import Raw, bullets, fenced, folded, plain
from runner.report.profile_section import arrange_profiles
from runner.report.provenance import provenance

IN_TURNS = (
    "The releases take turns on one machine, in new processes in each round, and a change is the ratio of times of "
    "the same round"
)
COMPARED = "Before a time counts, the results of each test are compared with a reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """How somebody else repeats the measurement in an empty folder.

    Attributes:
        command: the command line.
        files: name -> content of the files that it needs.
        notes: what else it needs, as sentences.
    """

    command: str
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def issue_text(
    comparison: Comparison,
    analysis: Analysis,
    recipe: Repetition,
    profiles: Mapping[str, StepProfile] = MappingProxyType({}),
) -> str:
    """Return an issue as Markdown, with at most ``markdown.LIMIT`` characters.

    Args:
        comparison: what it is about.
        analysis: the run that the comparison is of.
        recipe: how to repeat it.
        profiles: cell id -> its profile.
    """
    names = comparison.releases
    rows = compared_rows([comparison], names)
    sides = {comparison.base, *comparison.others}
    controls = control_lines(analysis.comparisons, analysis.measured.plain_pairs.values(), names)
    checks = [row for row in accuracy(analysis.dataset) if row.environment in sides]
    needed = [f"# {plain(title(rows, names))}", *_measured(comparison, rows), *_changes(rows), *_repeat(recipe)]
    differences = list(markdown.all_differences(comparison))
    optional = [
        ("what else differs", differences),
        ("controls", markdown.controls([line for line in controls if line.cell.environment in sides])),
        ("profiles", profile_markdown.parts(arrange_profiles(_of_sides(profiles, rows), rows, names))),
        ("correctness", markdown.correctness(checks)),
        ("all comparisons", markdown.all_comparisons(rows, len(rows)) if len(rows) > 1 else []),
        ("how to repeat the run", markdown.how_to_repeat([*provenance(analysis.dataset)])),
    ]
    return markdown.limited(needed, optional, rows)


def subjects(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    """Return the rows that an issue is about: those that are slower, or all where none is."""
    return [each for each in rows if each.row.verdict == "slower"] or list(rows)


def title(rows: Sequence[ComparedRow], names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the largest slow-down in a line, or that there is none."""
    first = subjects(rows)[0]
    sides = first.row.environment, first.row.base.environment
    other, base = name(sides[0], names), base_name(sides[1], sides[0], names)
    if first.row.verdict != "slower":
        return f"{other} against {base}: no test is slower"
    change = f"{other} is {first.change} than {base}: {first.test}, {first.api}"
    more = len(subjects(rows)) - 1
    return f"{change}, and {counted(more, 'more test')}" if more else change


def _measured(comparison: Comparison, rows: Sequence[ComparedRow]) -> list[str]:
    """Return what measured, how, the means, and which changes can be called at all."""
    unchecked = any(issue.code == UNCHECKED for each in rows for issue in each.row.quality_issues)
    sentences = [f"measured on {comparison_notes.devices(comparison)}", IN_TURNS, *([] if unchecked else [COMPARED])]
    notes = [*comparison_notes.widening_sentences([comparison]), *comparison_notes.detectable_texts([comparison])]
    grades = [f"trust in run {run}: {grade.sentence}" for run, grade in comparison.grades.items()]
    items = [*map(formatting.sentence, sentences), *wording.mean_sentences(comparison)]
    return [bullets([*items, *map(formatting.sentence, [*notes, *grades])])]


def _changes(rows: Sequence[ComparedRow]) -> list[str]:
    about = subjects(rows)
    heading = "Slower" if about[0].row.verdict == "slower" else "Largest changes"
    return [f"## {heading}", *markdown.first_changes(about)]


def _repeat(recipe: Repetition) -> list[str]:
    files = [
        folded(Raw(formatting.escape(name)), [fenced(content, "python")]) for name, content in recipe.files.items()
    ]
    put = "In an empty folder" + (f" with {formatting.few([*recipe.files])}" if recipe.files else "")
    notes = [bullets(map(formatting.sentence, recipe.notes))] if recipe.notes else []
    return ["## How to repeat it", f"{plain(put)}:", fenced(recipe.command, "sh"), *files, *notes]


def _of_sides(profiles: Mapping[str, StepProfile], rows: Sequence[ComparedRow]) -> Mapping[str, StepProfile]:
    """Return the profiles of the sides of some rows, and of their controls."""
    sides = {cell.environment for each in rows for cell in (each.row.base, each.row.other)}
    return {cell: of for cell, of in profiles.items() if without_control(environment_of(cell)) in sides}
