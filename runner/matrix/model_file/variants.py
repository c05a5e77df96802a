"""``VARIANTS`` of a model file: the ways to run the class of a framework, each an implementation of its cells."""

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.core.errors import Problem
from runner.matrix.model_file.classes import CLASS_NAMES, ModelClass
from runner.matrix.model_file.literals import VARIANT, VARIANTS, Literals
from runner.matrix.model_file.source import PythonSource

EXAMPLE = 'VARIANTS = {"torch": ["eager", "compile>=2.0"]}'
LONGEST_NAME = 40  # characters; it is a part of the names of files
_VARIANT = re.compile(r"([a-z][a-z0-9]*(?:-[a-z0-9.]+)*) *([<>].*)?")
_BOUND = re.compile(r" *(>=|<) *([0-9]{1,6}(?:\.[0-9]{1,6}){0,3}) *")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkVariant:
    """A way to run the class of a framework.

    Attributes:
        name: what the class gets as ``variant``, and the implementation of its cells.
        since: the first release of the framework that has it, as numbers; empty for all.
        before: the first release that no longer has it; empty for none.
    """

    name: str
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "NetworkVariant":
        """Return a variant as ``as_stored`` gave it."""
        return cls(name=stored["name"], since=tuple(stored["since"]), before=tuple(stored["before"]))

    def as_stored(self) -> dict[str, Any]:
        """Return it as plans and the harness have it."""
        return {**asdict(self), "since": list(self.since), "before": list(self.before)}


def parse_variant(text: str) -> NetworkVariant | None:
    """Return the variant that a text of ``VARIANTS`` names; None if it names none.

    >>> parse_variant("compile>=2.0")
    NetworkVariant(name='compile', since=(2, 0), before=())
    """
    match = _VARIANT.fullmatch(text)
    if match is None or len(match[1]) > LONGEST_NAME:
        return None
    releases: dict[str, tuple[int, ...]] = {}
    for part in match[2].split(",") if match[2] else ():
        bound = _BOUND.fullmatch(part)
        if bound is None or bound[1] in releases:
            return None
        releases[bound[1]] = tuple(map(int, bound[2].split(".")))
    return NetworkVariant(name=match[1], since=releases.get(">=", ()), before=releases.get("<", ()))


def read_variants(literals: Literals) -> dict[str, tuple[NetworkVariant, ...]]:
    """Return framework -> its variants; the mistakes go to the problems of the literals."""
    node = literals.values.get(VARIANTS)
    if node is None:
        return {}
    variants = {}
    for key, framework, value in literals.items(node, VARIANTS, EXAMPLE):
        if framework not in CLASS_NAMES:
            close = difflib.get_close_matches(framework[:100], CLASS_NAMES, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(CLASS_NAMES)}"
            literals.report(key, f"there is no framework {framework[:60]!r}", hint)
        variants[framework] = tuple(_of_framework(literals, framework, value))
    return variants


def _of_framework(literals: Literals, framework: str, node: ast.expr) -> Iterator[NetworkVariant]:
    """Yield the variants in a list."""
    if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
        literals.report(node, f"the variants of {framework[:60]!r} must be a list of names", EXAMPLE)
        return
    seen: set[str] = set()
    for item in node.elts:
        text = literals.literal(item)
        variant = parse_variant(text) if isinstance(text, str) else None
        if variant is None:
            if text is not None:
                hint = 'small letters, then digits and dashes, and the releases that have it: "compile>=2.0"'
                literals.report(item, f"{str(text)[:60]!r} is not a variant", hint)
        elif variant.name in seen:
            literals.report(item, f"{framework!r} has the variant {variant.name!r} twice", "remove one of them")
        else:
            seen.add(variant.name)
            yield variant


def variant_problems(
    variants: Mapping[str, Sequence[NetworkVariant]],
    models: Sequence[ModelClass],
    literals: Literals,
    source: PythonSource,
) -> Iterator[Problem]:
    """Yield a problem for each framework whose variants no class takes.

    Args:
        variants: framework -> its variants.
        models: the classes of the file.
        literals: of the file, where the variants are written.
        source: the file.
    """
    written = literals.values.get(VARIANTS)
    keys = (
        {key.value: key for key in written.keys if isinstance(key, ast.Constant)}
        if isinstance(written, ast.Dict)
        else {}
    )
    by_framework = {model.framework: model for model in models}
    for framework in (each for each in variants if each in CLASS_NAMES):
        name, model = CLASS_NAMES[framework], by_framework.get(framework)
        if model is None:
            message = f"VARIANTS names variants of {framework!r}, and {source.name} has no {name}"
            yield source.problem(keys[framework], message, f"add `class {name}:`, or remove {framework!r}")
        elif not model.signature.takes(VARIANT):
            message = f"{name} has no parameter {VARIANT!r}, which VARIANTS gives"
            yield source.problem(
                keys[framework], message, f"add the parameter {VARIANT!r} to {name}: the name of a variant"
            )
