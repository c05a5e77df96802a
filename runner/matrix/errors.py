"""Pydantic's complaints about a matrix as problems with a place and a hint."""

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from runner.core.errors import Problem
from runner.matrix import models
from runner.matrix.yaml_tree import Path, Tree, Unread, quoted, short, written_as

_MODELS: dict[tuple[str, int], type[BaseModel]] = {
    ("", 0): models.Matrix,
    ("environments", 2): models.Environment,
    ("environments", 4): models.Variant,
    ("workloads", 2): models.WorkloadChoice,
    ("presets", 2): models.Preset,
    ("presets", 4): models.Selector,
    ("measure", 1): models.Measure,
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


class _Complaint(NamedTuple):
    """One error of pydantic with the node it is about."""

    tree: Tree
    path: Path
    error: ErrorDetails
    node: yaml.Node

    @property
    def name(self) -> str:
        """What the value is called: its key, or an item of its key's list."""
        if not self.path:
            return "the matrix"
        last = self.path[-1]
        return last if isinstance(last, str) else f"an item of {self.path[-2]}"

    @property
    def token(self) -> str:
        """The value as it is written."""
        text = self.tree.source.token(self.node)
        return text if len(text) <= 60 else f"{text[:57]}..."

    @property
    def kind_of_value(self) -> str:
        """What YAML read, in words."""
        return written_as(self.error["input"], self.node)

    def limit(self, name: str) -> Any:  # noqa: ANN401 - text or a number, as the rule has it
        """Return what pydantic says the rule is: a number, or the words that are allowed."""
        return self.error["ctx"][name]


_MessageAndHint = tuple[str, str | None]


def nearest(word: str, known: Iterable[str], label: str) -> str:
    """Return a hint that names the nearest known word, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(word[:100], known, 1)
    return f"did you mean {close[0]!r}?" if close else f"{label}: {', '.join(known)}"


def explain(tree: Tree, error: ValidationError) -> list[Problem]:
    """Return what pydantic found, one problem for each mistake, with the place of each in the file."""
    details = error.errors(include_url=False)
    meant = meant_keys(details)
    problems = []
    for detail in details:
        loc = detail["loc"]
        lost = detail["type"] == "missing" and (loc in meant or loc[:-1] in tree.incomplete)
        reported = isinstance(detail["input"], Unread) and detail["input"].kind != "a date"
        if not (lost or reported or detail["type"] == "rule"):
            problems += _problem(tree, detail)
    return problems


def meant_keys(details: Iterable[ErrorDetails]) -> set[Path]:
    """Return the paths that misspelt keys were meant to have, so that these are not called missing as well."""
    meant = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            *parent, key = detail["loc"]
            meant |= {(*parent, name) for name in difflib.get_close_matches(str(key)[:100], _known(tuple(parent)), 1)}
    return meant


def _known(path: Path) -> list[str]:
    model = _MODELS[str(path[0]) if path else "", len(path)]
    return list(model.model_fields)


def _problem(tree: Tree, error: ErrorDetails) -> list[Problem]:
    loc, kind = error["loc"], error["type"]
    path = loc
    while path not in tree.values:
        path = path[:-1]
    about_key = loc[-1:] == ("[key]",) or kind in ("extra_forbidden", "missing")
    union = len(loc) > len(path) and not about_key
    if union and kind != "literal_error":
        return []  # the other half of "one of these words, or a number"
    at = _Complaint(tree, path, error, tree.values[path])
    say = _literal_or_number if union else _SAY.get(kind, _other)
    message, hint = say(at)
    return [Problem(message, tree.source.node(_node_to_mark(at, about_key=about_key)), hint)]


def _node_to_mark(at: _Complaint, *, about_key: bool) -> yaml.Node:
    """Return the node to point at: the value, or the key where the value is missing or the key is meant."""
    if (about_key or not _width(at.node)) and at.path in at.tree.keys:
        return at.tree.keys[at.path]
    if at.error["type"] == "missing" and not at.path and at.node.value:
        first: yaml.Node = at.node.value[0][0]
        return first
    return at.node


def _width(node: yaml.Node) -> int:
    return int(node.end_mark.index - node.start_mark.index)


def _missing(at: _Complaint) -> _MessageAndHint:
    key = str(at.error["loc"][-1])
    return f"key {key!r} is missing in {at.name}", f"add {_EXAMPLES.get(key, f'{key}:')}"


def _unknown(at: _Complaint) -> _MessageAndHint:
    key = str(at.path[-1])
    return f"unknown key {short(key)}", nearest(key, _known(at.path[:-1]), "known keys")


def _must(what: str) -> Callable[[_Complaint], _MessageAndHint]:
    """Return what to say of a value that is not what it must be."""

    def say(at: _Complaint) -> _MessageAndHint:
        value = "nothing is written" if at.kind_of_value == "nothing" else f"YAML read {at.kind_of_value}"
        return f"{at.name} must be {what}, and {value}", _how(what, at)

    return say


def _how(what: str, at: _Complaint) -> str:
    nothing = at.kind_of_value == "nothing"
    if what == "text":
        if nothing:
            return "write it in quotes"
        return f"put it in quotes: {quoted(at.node)}" if isinstance(at.node, yaml.ScalarNode) else "write one text"
    if what == "a list":
        scalar = isinstance(at.node, yaml.ScalarNode) and not nothing
        return f"put it in brackets: [{at.token}]" if scalar else "start each item with '- '"
    if what == "a mapping":
        return "write lines of key: value below it, indented"
    bare = at.token.strip("'\"")
    return f"write it without quotes: {bare}" if re.fullmatch(r"[0-9]+(\.[0-9]+)?", bare) else "write a number"


def _number(what: str) -> Callable[[_Complaint], _MessageAndHint]:
    """Return what to say of a value that is no number, or not a number of the right kind."""

    def say(at: _Complaint) -> _MessageAndHint:
        if at.kind_of_value == "a number":
            fitting = "a smaller number" if what == "a number" else what  # a number, yet more than a float holds
            return f"{at.name} must be {fitting}, found {at.token}", None
        return _must(what)(at)

    return say


def _bound(words: str, name: str) -> Callable[[_Complaint], _MessageAndHint]:
    """Return what to say of a number beyond its limit."""
    return lambda at: (f"{at.name} must be {words} {at.limit(name):g}, found {at.token}", None)


def _literal(at: _Complaint) -> _MessageAndHint:
    known = re.findall("'([^']*)'", str(at.limit("expected")))
    if at.error["loc"][-1] == "[key]":
        word, kind = str(at.path[-1]), _KINDS.get(str(at.path[-2]), "key")
        return f"unknown {kind} {short(word)}", "did you mean 'cuda'?" if word == "gpu" else nearest(
            word, known, "known"
        )
    if not known:
        return f"{at.name} must be {at.limit('expected')}, found {at.token}", f"write {at.limit('expected')}"
    word = str(at.error["input"])
    alias = models.FRAMEWORK_ALIASES.get(word) if at.name == "framework" else None
    value = short(word) if isinstance(at.error["input"], str) else at.kind_of_value
    return f"{at.name} cannot be {value}", f"did you mean {alias!r}?" if alias else nearest(word, known, "one of")


def _literal_or_number(at: _Complaint) -> _MessageAndHint:
    known = str(at.limit("expected")).replace(" or ", ", ").replace("'", "")
    return f"{at.name} must be one of {known}, or a whole number above 0, found {at.token}", None


def _pattern(at: _Complaint) -> _MessageAndHint:
    if at.error["loc"][-1] == "[key]":
        word = str(at.path[-1])
        return f"{short(word)} is not an environment id", "small letters, then parts after dashes, such as torch-1.0"
    return f"{at.name} must be a version such as '3.10', found {at.token}", "write its first two numbers, in quotes"


def _other(at: _Complaint) -> _MessageAndHint:
    message = at.error["msg"]
    return f"{at.name}: {message[:1].lower()}{message[1:]}", None


_SAY: dict[str, Callable[[_Complaint], _MessageAndHint]] = {
    "address": lambda at: (f"{at.name} {at.error['msg']}, found {at.token}", None),
    "dict_type": _must("a mapping"),
    "extra_forbidden": _unknown,
    "finite_number": _number("a finite number"),
    "float_type": _number("a number"),
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "int_type": _number("a whole number"),
    "less_than": _bound("below", "lt"),
    "literal_error": _literal,
    "missing": _missing,
    "model_type": _must("a mapping"),
    "string_pattern_mismatch": _pattern,
    "string_too_short": lambda at: (f"{at.name} is empty", "write it between the quotes"),
    "string_type": _must("text"),
    "tuple_type": _must("a list"),
}
