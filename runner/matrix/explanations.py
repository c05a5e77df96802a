"""Say what is wrong with a value or a key of a matrix, by the type of pydantic's error: a message and a hint."""

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel
from pydantic_core import ErrorDetails

from runner.core.text import without_label
from runner.matrix import models
from runner.matrix.environments import Environment
from runner.matrix.fields import FRAMEWORK_ALIASES
from runner.matrix.sources import Aarch64, Variant
from runner.matrix.yaml_tree import Path, Tree, abbreviated, in_quotes, kind_of

_MODELS: dict[tuple[str, int], type[BaseModel]] = {
    ("", 0): models.Matrix,
    ("environments", 2): Environment,
    ("environments", 3): Aarch64,
    ("environments", 4): Variant,
    ("environments", 5): Aarch64,
    ("workloads", 2): models.WorkloadChoice,
    ("presets", 2): models.Preset,
    ("presets", 4): models.Selector,
    ("measure", 1): models.Measure,
    ("nightly", 1): models.Nightly,
    ("gpu", 1): models.GpuSettings,
    ("exclude", 2): models.Exclude,
}
_EXAMPLES = {
    "version": "version: 1",
    "environments": "environments: and at least one below it",
    "workloads": "workloads: and at least one below it",
    "framework": "framework: torch",
    "release": 'release: "1.0.0"',
    "select": "select: and what it selects",
    "reason": "reason: and why, in a sentence",
}
_KINDS = {"environments": "environment id", "workloads": "workload", "variants": "variant"}


def known_keys(path: Path) -> list[str]:
    """Return the keys that the mapping at a path of a matrix may have."""
    model = _MODELS[str(path[0]) if path else "", len(path)]
    return list(model.model_fields)


class Mistake(NamedTuple):
    """An error of pydantic with the node that it is about.

    Attributes:
        tree: the file.
        path: the path of the value that the file has.
        error: what pydantic says of it.
        node: where the value stands.
        keys: path of a mapping -> the keys that it may have.
    """

    tree: Tree
    path: Path
    error: ErrorDetails
    node: yaml.Node
    keys: Callable[[Path], list[str]] = known_keys

    @property
    def name(self) -> str:
        """The name of the value: its key, or an item of the list of its key."""
        if not self.path:
            return "the matrix"
        last = self.path[-1]
        if not isinstance(last, str):
            return f"an item of {self.path[-2]}"
        return last if last.isprintable() and len(last) <= 60 else abbreviated(last)

    @property
    def token(self) -> str:
        """The value as it is written."""
        text = self.tree.source.token(self.node)
        return text if len(text) <= 60 else f"{text[:57]}..."

    @property
    def kind_of_value(self) -> str:
        """The kind of the value in words."""
        return kind_of(self.error["input"], self.node)

    def limit(self, name: str) -> Any:  # noqa: ANN401 - text or a number, depending on the rule
        """Return a value of the broken rule: its limit, or the words that it allows."""
        return self.error["ctx"][name]


_MessageAndHint = tuple[str, str | None]


def nearest(word: str, known: Iterable[str], label: str) -> str:
    """Return a hint with the nearest known word, or with all of them."""
    known = list(known)
    close = difflib.get_close_matches(word[:100], known, 1)
    return f"did you mean {close[0]!r}?" if close else f"{label}: {', '.join(known)}"


def _missing(mistake: Mistake) -> _MessageAndHint:
    key = str(mistake.error["loc"][-1])
    return f"key {key!r} is missing in {mistake.name}", f"add {_EXAMPLES.get(key, f'{key}:')}"


def _unknown(mistake: Mistake) -> _MessageAndHint:
    key = str(mistake.path[-1])
    return f"unknown key {abbreviated(key)}", nearest(key, mistake.keys(mistake.path[:-1]), "known keys")


def _must(what: str) -> Callable[[Mistake], _MessageAndHint]:
    """Return the explanation of a value of the wrong kind."""

    def explanation(mistake: Mistake) -> _MessageAndHint:
        value = "nothing is written" if mistake.kind_of_value == "nothing" else f"YAML read {mistake.kind_of_value}"
        return f"{mistake.name} must be {what}, and {value}", _how(what, mistake)

    return explanation


def _how(what: str, mistake: Mistake) -> str:
    """Return the hint for a value of the wrong kind."""
    nothing = mistake.kind_of_value == "nothing"
    if what == "text":
        if nothing:
            return "write it in quotes"
        return (
            f"put it in quotes: {in_quotes(mistake.node)}"
            if isinstance(mistake.node, yaml.ScalarNode)
            else "write one text"
        )
    if what == "a list":
        scalar = isinstance(mistake.node, yaml.ScalarNode) and not nothing
        return f"put it in brackets: [{mistake.token}]" if scalar else "start each item with '- '"
    if what == "a mapping":
        return "write lines of key: value below it, indented"
    bare = mistake.token.strip("'\"")
    return f"write it without quotes: {bare}" if re.fullmatch(r"[0-9]+(\.[0-9]+)?", bare) else "write a number"


def _number(what: str) -> Callable[[Mistake], _MessageAndHint]:
    """Return the explanation of a value that is no number, or not the right kind of number."""

    def explanation(mistake: Mistake) -> _MessageAndHint:
        if mistake.kind_of_value == "a number":
            fitting = "a smaller number" if what == "a number" else what  # a number too large for a float
            return f"{mistake.name} must be {fitting}, found {mistake.token}", None
        return _must(what)(mistake)

    return explanation


def _bound(words: str, name: str) -> Callable[[Mistake], _MessageAndHint]:
    """Return the explanation of a number beyond its limit."""
    return lambda mistake: (f"{mistake.name} must be {words} {mistake.limit(name):,.16g}, found {mistake.token}", None)


def _literal(mistake: Mistake) -> _MessageAndHint:
    known = re.findall("'([^']*)'", str(mistake.limit("expected")))
    if mistake.error["loc"][-1] == "[key]":
        word, kind = str(mistake.path[-1]), _KINDS.get(str(mistake.path[-2]), "key")
        return f"unknown {kind} {abbreviated(word)}", "did you mean 'cuda'?" if word == "gpu" else nearest(
            word, known, "known"
        )
    if not known:
        return (
            f"{mistake.name} must be {mistake.limit('expected')}, found {mistake.token}",
            f"write {mistake.limit('expected')}",
        )
    word = str(mistake.error["input"])
    alias = FRAMEWORK_ALIASES.get(word) if mistake.name == "framework" else None
    value = abbreviated(word) if isinstance(mistake.error["input"], str) else mistake.kind_of_value
    return f"{mistake.name} cannot be {value}", f"did you mean {alias!r}?" if alias else nearest(word, known, "one of")


def literal_or_number(mistake: Mistake) -> _MessageAndHint:
    """Explain a value that is neither one of the allowed words nor a number above 0."""
    known = str(mistake.limit("expected")).replace(" or ", ", ").replace("'", "")
    return f"{mistake.name} must be one of {known}, or a whole number above 0, found {mistake.token}", None


def _pattern(mistake: Mistake) -> _MessageAndHint:
    if mistake.error["loc"][-1] == "[key]":
        word = str(mistake.path[-1])
        return (
            f"{abbreviated(word)} is not an environment id",
            "small letters, then parts after dashes, such as torch-1.0",
        )
    return (
        f"{mistake.name} must be a version such as '3.10', found {mistake.token}",
        "write its first two numbers, in quotes",
    )


def _too_long(mistake: Mistake) -> _MessageAndHint:
    return f"{mistake.name} has more than {mistake.limit('max_length')} characters", "shorten it"


def _refused(mistake: Mistake) -> _MessageAndHint:
    """Explain a value by the message and the hint of the check that refused it, see ``runner.matrix.fields``."""
    value = "" if mistake.error["loc"][-1] == "[key]" else f", found {mistake.token}"
    return f"{mistake.name} {mistake.limit('text')}{value}", mistake.limit("hint")


def other(mistake: Mistake) -> _MessageAndHint:
    """Explain a mistake of a type that has no explanation here, in the words of pydantic."""
    message = without_label(mistake.error["msg"])
    return f"{mistake.name}: {message[:1].lower()}{message[1:]}", None


EXPLANATIONS: dict[str, Callable[[Mistake], _MessageAndHint]] = {
    "dict_type": _must("a mapping"),
    "extra_forbidden": _unknown,
    "finite_number": _number("a finite number"),
    "float_type": _number("a number"),
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "int_type": _number("a whole number"),
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "literal_error": _literal,
    "missing": _missing,
    "model_type": _must("a mapping"),
    "refused": _refused,
    "string_pattern_mismatch": _pattern,
    "string_too_long": _too_long,
    "string_too_short": lambda mistake: (f"{mistake.name} is empty", "write it between the quotes"),
    "string_type": _must("text"),
    "tuple_type": _must("a list"),
}
