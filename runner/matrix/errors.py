"""Turn pydantic's errors about a matrix into problems with a place and a hint."""

import difflib
from collections.abc import Callable, Iterable

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runner.core.errors import Problem
from runner.matrix.explanations import EXPLANATIONS, Mistake, known_keys, literal_or_number, other
from runner.matrix.extensions import is_extension
from runner.matrix.yaml_tree import Path, Tree, Unread


def explain(tree: Tree, error: ValidationError, keys: Callable[[Path], list[str]] = known_keys) -> list[Problem]:
    """Return a problem for each mistake that pydantic found, with its place in the file.

    Errors that only follow from another mistake are left out.

    Args:
        tree: the file.
        error: what pydantic says of its data.
        keys: path of a mapping -> the keys that it may have; by default those of a matrix.
    """
    details = error.errors(include_url=False)
    intended = intended_keys(details, keys)
    problems = []
    for detail in details:
        loc = detail["loc"]
        misspelt = detail["type"] == "missing" and (
            loc in intended or loc[:-1] in tree.incomplete or _extends(detail, intended)
        )
        reported = isinstance(detail["input"], Unread) and detail["input"].kind != "a date"
        if not (misspelt or reported or detail["type"] == "rule"):
            problems += _problem(tree, detail, keys)
    return problems


def _extends(detail: ErrorDetails, intended: set[Path]) -> bool:
    """Return True if a key is missing in an environment that takes it from another."""
    return is_extension(detail["input"]) or (*detail["loc"][:-1], "extends") in intended


def intended_keys(details: Iterable[ErrorDetails], keys: Callable[[Path], list[str]] = known_keys) -> set[Path]:
    """Return the paths that misspelt keys probably stand for, so that these keys are not reported as missing."""
    intended = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            *parent, key = detail["loc"]
            intended |= {(*parent, name) for name in difflib.get_close_matches(str(key)[:100], keys(tuple(parent)), 1)}
    return intended


def _problem(tree: Tree, error: ErrorDetails, keys: Callable[[Path], list[str]]) -> list[Problem]:
    loc, kind = error["loc"], error["type"]
    path = loc
    while path not in tree.values:
        path = path[:-1]
    about_key = loc[-1:] == ("[key]",) or kind in ("extra_forbidden", "missing")
    union = len(loc) > len(path) and not about_key
    if union and kind != "literal_error":
        return []  # the other half of "one of these words, or a number"
    mistake = Mistake(tree, path, error, tree.values[path], keys)
    explanation = literal_or_number if union else EXPLANATIONS.get(kind, other)
    message, hint = explanation(mistake)
    return [Problem(message, tree.source.node(_node_to_mark(mistake, about_key=about_key)), hint)]


def _node_to_mark(mistake: Mistake, *, about_key: bool) -> yaml.Node:
    """Return the node to point at: the value, or the key if the value is empty or the mistake is about the key."""
    if (about_key or not _width(mistake.node)) and mistake.path in mistake.tree.keys:
        return mistake.tree.keys[mistake.path]
    if mistake.error["type"] == "missing" and not mistake.path and mistake.node.value:
        first: yaml.Node = mistake.node.value[0][0]
        return first
    return mistake.node


def _width(node: yaml.Node) -> int:
    return int(node.end_mark.index - node.start_mark.index)
