"""Read ``regressions/index.yaml``: public reports of regressions and equal controls, each with its model file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from runner.core.errors import MatrixError, Problem
from runner.core.files import read_bounded
from runner.core.metrics import BY_NAME
from runner.matrix.errors import explain
from runner.matrix.explanations import nearest
from runner.matrix.yaml_source import MAX_BYTES, compose, decode
from runner.matrix.yaml_tree import Tree, build_tree

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "regressions" / "index.yaml"
Sign = Literal["worse", "same"]
NAME = r"[a-z0-9]+(?:-[a-z0-9]+)+"
"""Names of entries: two words or more, so that the heading of a table is none."""


def _refused(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{text}", {"text": message, "hint": hint})


def _releases(text: str) -> str:
    """Return a release with the packages that are added to it; refuse what names no exact versions."""
    for word in text.split(","):
        try:
            pinned = [each.operator for each in Requirement(word).specifier] == ["=="]
        except InvalidRequirement:
            pinned = False
        if not pinned:
            raise _refused("must name exact releases", "write it as numpy==1.26.4, or numpy==2.2.6,numba==0.65.0")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(NAME, text):
        raise _refused("cannot name an entry", "two words or more with dashes between them, such as numpy-einsum")
    return text


def _metric(text: str) -> str:
    if text not in BY_NAME:
        raise _refused("must be the name of a metric", nearest(text, BY_NAME, "one of"))
    return text


def _source(text: str) -> str:
    repository, _, number = text.partition("#")
    if repository.count("/") != 1 or not all(repository.split("/")) or not number.isdecimal():
        raise _refused("must be a public report", "write it as OWNER/NAME#NUMBER")
    return text


class Entry(BaseModel):
    """A report of a regression, or an equal control.

    Attributes:
        source: the report as OWNER/NAME#NUMBER; empty for a control.
        claim: what the report says, or what a control assumes, in a sentence.
        good: the release without the change as the command line names it; ``bad`` the one with it.
        file: the model file, beside the index.
        case: the case of the file that is compared; ``phase`` likewise.
        metric: what is compared.
        sign: ``worse`` where the bad release takes more; ``same`` for a control.
        cpu: whether the change shows on a CPU.
        explained_by: the cause as a sentence; empty where it is not known.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    source: Annotated[str, AfterValidator(_source)] = ""
    claim: str
    good: Annotated[str, AfterValidator(_releases)]
    bad: Annotated[str, AfterValidator(_releases)]
    file: str
    case: str
    phase: str
    metric: Annotated[str, AfterValidator(_metric)]
    sign: Sign
    cpu: bool
    explained_by: str = ""


def read_index(path: Path = INDEX) -> dict[str, Entry]:
    """Return name -> entry, in the order of the file.

    Raises:
        MatrixError: the file cannot be read or has mistakes; the error has all of them, each with its place.
    """
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise MatrixError(Problem(f"cannot read {path}: {error.strerror}")) from error
    return parse_index(content, str(path), path.parent)


def parse_index(content: bytes, name: str, folder: Path) -> dict[str, Entry]:
    """Return name -> entry of the content of an index.

    Args:
        content: the bytes of the file.
        name: what messages call the file.
        folder: where the model files are.

    Raises:
        MatrixError: the content has mistakes; the error has all of them.
    """
    source = decode(content, name)
    tree = build_tree(source, compose(source))
    if not isinstance(tree.data, dict):
        raise MatrixError(Problem("the index must be a mapping", source.where(0, 0), "write NAME: and its keys below"))
    problems, entries = list(tree.problems), dict[str, Entry]()
    try:
        entries = TypeAdapter(dict[Annotated[str, AfterValidator(_name)], Entry]).validate_python(tree.data)
    except ValidationError as error:
        problems += explain(tree, error, lambda _: list(Entry.model_fields))
    problems += _contradictions(tree, entries, folder)
    if problems:
        raise MatrixError(
            *sorted(problems, key=lambda each: (each.where.line, each.where.column) if each.where else ())
        )
    return entries


def _contradictions(tree: Tree, entries: dict[str, Entry], folder: Path) -> Iterator[Problem]:
    """Yield a problem for each file that is not there, and each entry whose keys contradict each other."""
    for name, entry in entries.items():
        if not (folder / entry.file).is_file():
            where = tree.source.node(tree.values[name, "file"])
            yield Problem(f"there is no {entry.file} beside the index", where, "write the model file, or correct this")
        if bool(entry.source) == (entry.sign == "same"):
            where = tree.source.node(tree.keys[name, "sign"])
            message = "a control has no source" if entry.source else "a regression needs its source"
            yield Problem(
                message, where, "source: OWNER/NAME#NUMBER stands with sign: worse, and never with sign: same"
            )
