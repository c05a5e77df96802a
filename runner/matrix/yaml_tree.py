"""Turn a YAML node tree into plain data, and keep the node of every path; no tag is ever executed."""

from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

from runner.core.errors import MatrixError, Problem
from runner.matrix.yaml_source import MAX_DEPTH, TOO_DEEP, UNPRINTABLE, SourceText

Path = tuple[str | int, ...]

MAX_VALUES = 10_000  # a hundred environments make 3,000
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = (f"{_TAG}str", f"{_TAG}value", f"{_TAG}merge")  # "=" and "<<" are text where they are values
_KINDS = {
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "timestamp": "a date",
}


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that is not constructed, such as a date; no model accepts it.

    Attributes:
        kind: ``a date``, ``tag`` for an unknown tag, ``text`` with control characters, or a type of YAML.
    """

    kind: str


@dataclass(slots=True)
class Tree:
    """The data of a file and where it is written.

    Attributes:
        source: the text.
        data: dicts, lists and scalars, for the models.
        values: path -> the node of the value.
        keys: path -> the node of the key of the value.
        problems: the mistakes in values and keys; more are found by the models.
        incomplete: the paths of mappings that lost a key because of such a mistake.
    """

    source: SourceText
    data: Any = None
    values: dict[Path, yaml.Node] = field(default_factory=dict)
    keys: dict[Path, yaml.Node] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    incomplete: set[Path] = field(default_factory=set)

    def report(self, node: yaml.Node, message: str, hint: str | None = None) -> None:
        """Add a problem at a node."""
        self.problems.append(Problem(message, self.source.node(node), hint))


def build_tree(source: SourceText, root: yaml.Node) -> Tree:
    """Return the data below a node; mistakes go to ``problems``, and the keys and values with mistakes are left out.

    Raises:
        MatrixError: it is too deep or too large once its aliases are followed.
    """
    tree = Tree(source)
    tree.data = _value(tree, root, ())
    return tree


def kind_of(value: object, node: yaml.Node) -> str:
    """Return the kind of a value in words: ``a number``, ``a list``, ``text``, ..."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return _KINDS.get(node.tag.removeprefix(_TAG), "text")


def _value(tree: Tree, node: yaml.Node, path: Path) -> object:
    tree.values[path] = node
    if len(path) > MAX_DEPTH or len(tree.values) > MAX_VALUES:
        what = f"more than {MAX_VALUES:,} values" if len(path) <= MAX_DEPTH else TOO_DEEP
        where = tree.source.node(tree.values[path[:1]])
        raise MatrixError(Problem(f"{what} once the aliases are followed", where, "write the values out"))
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(tree, node, path)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_value(tree, item, (*path, number)) for number, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(tree, node)
    return _unknown_tag(tree, node)


def _mapping(tree: Tree, node: yaml.MappingNode, path: Path) -> dict[str, object]:
    data: dict[str, object] = {}
    for key_node, value_node in node.value:
        key = _key(tree, key_node)
        if key is None:
            tree.incomplete.add(path)
            continue
        below = (*path, key)
        if key in data:
            tree.report(
                key_node, f"key {abbreviated(key)} is given twice", f"the first is in line {line_of(tree.keys[below])}"
            )
            _value(tree, value_node, (*below, "given again"))
            continue
        tree.keys[below] = key_node
        data[key] = _value(tree, value_node, below)
    return data


def _key(tree: Tree, node: yaml.Node) -> str | None:
    """Return the key; None, and a problem, if it is not text."""
    if not isinstance(node, yaml.ScalarNode):
        tree.report(node, "a key must be text, not a list or a mapping", "remove the brackets")
        return None
    if node.tag == f"{_TAG}merge":
        tree.report(node, "merge keys (<<) are not supported", "write the keys out, or alias the whole value")
        return None
    key = _scalar(tree, node)
    if isinstance(key, str):
        return key
    if not isinstance(key, Unread) or key.kind == "a date":
        what = kind_of(key, node)
        tree.report(node, f"a key must be text, and YAML read {what}", f"put it in quotes: {in_quotes(node)}")
    return None


def _scalar(tree: Tree, node: yaml.ScalarNode) -> object:
    if node.tag in _TEXT_TAGS:
        if match := UNPRINTABLE.search(node.value):
            tree.report(node, f"this stands for the control character U+{ord(match[0]):04X}", "remove the escape")
            return Unread("text")
        return node.value
    kind = node.tag.removeprefix(_TAG)
    if kind == "timestamp":
        return Unread("a date")
    if kind not in _KINDS:
        return _unknown_tag(tree, node)
    try:
        return SafeConstructor.yaml_constructors[node.tag](SafeConstructor(), node)
    except (ValueError, KeyError, IndexError, OverflowError, ConstructorError):  # "!!int abc", "0x_", 5,000 digits
        tree.report(
            node, f"{abbreviated(node.value)} cannot be read as {_KINDS[kind]}", "put it in quotes if it is text"
        )
        return Unread(kind)


def _unknown_tag(tree: Tree, node: yaml.Node) -> Unread:
    tag = node.tag.replace(_TAG, "!!", 1)
    tree.report(node, f"tag {abbreviated(tag)} is not allowed", "write the plain value, without a tag")
    return Unread("tag")


def line_of(node: yaml.Node) -> int:
    """Return the line of a node, from 1."""
    return int(node.start_mark.line) + 1


def abbreviated(text: str) -> str:
    """Return a text in quotes, cut to 60 characters."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def in_quotes(node: yaml.ScalarNode) -> str:
    """Return the text of a scalar in single quotes, cut to 60 characters."""
    return "'" + abbreviated(node.value)[1:-1] + "'"
