"""Decode and parse a YAML file, and give places in its text; mistakes in encoding and syntax are reported here."""

import re
from dataclasses import dataclass, field

import yaml

from runner.core.errors import MatrixError, Problem, Where

MAX_BYTES = 256 * 1024  # a hundred environments need 40 KiB
MAX_DEPTH = 40  # the models nest 6 deep
TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
_LONGEST_LINE = 160  # a longer line is cut in messages
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast, if installed

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Pattern of PyYAML's message, our message, our hint, and whether to point at the start of the construct.
_MISTAKES = (
    ("exceeded maximum nesting depth", TOO_DEEP, "close the brackets before it", False),
    (r"'\\t' that cannot start", "a tab cannot indent in YAML", "indent with spaces", False),
    (r"character '(.)' that cannot start", "text cannot start with {0!r} in YAML", "put the text in quotes", False),
    (r"mapping values are not allowed", "a second ': ' in one line", "put text that holds ': ' in quotes", False),
    (r"could not find expected ':'", "a key without a colon", "write key: value", True),
    (r"unexpected end of stream", "the quote that opens here is never closed", "close it", True),
    (r"expected '(,)' or '([]}])'", "what opens here lacks a comma or its {1!r}", "close it with {1!r}", True),
    (r"expected <block end>", "this does not line up with the lines above", "indent it like its neighbours", False),
    (r"undefined alias '(.*)'", "no anchor {0!r} stands above this alias", "write &{0} before the value meant", False),
    (r"second occurrence", "an anchor of this name stands above", "give it another name", False),
    (r"but found another document", "a second YAML document", "keep one document in a file: remove this", False),
)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file, and places in it.

    Attributes:
        name: what messages call the file.
        text: its content.
        lines: the lines of the text, as YAML counts them.
    """

    name: str
    text: str
    lines: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Split the text into lines."""
        object.__setattr__(self, "lines", _BREAK.split(self.text))

    def where(self, line: int, column: int, width: int = 1) -> Where:
        """Return a place by line and column, both from 0; the width in characters is cut at the end of the line."""
        text = self.lines[line] if line < len(self.lines) else ""
        width = max(1, min(width, len(text) - column))
        if len(text) > _LONGEST_LINE:
            text = text[:_LONGEST_LINE] if column + width < _LONGEST_LINE else ""
        shown = UNPRINTABLE.sub("\ufffd", text).replace("\t", " ")
        return Where(self.name, line + 1, column + 1, shown, width)

    def node(self, node: yaml.Node) -> Where:
        """Return the place of a node; of a node of several lines the first line."""
        start, end = node.start_mark, node.end_mark
        width = end.column - start.column if end.line == start.line else len(self.lines[start.line].rstrip())
        return self.where(start.line, start.column, width)

    def token(self, node: yaml.Node) -> str:
        """Return a node as it is written; of a node of several lines the first line."""
        where = self.node(node)
        return self.lines[where.line - 1][where.column - 1 :][: where.width]

    def index(self, index: int) -> Where:
        """Return the place of a character by its index in the text."""
        before = _BREAK.split(self.text[:index])
        return self.where(len(before) - 1, len(before[-1]))


def decode(content: bytes, name: str) -> SourceText:
    """Return the text of a file from its bytes.

    Raises:
        MatrixError: the file is too large, is not UTF-8, or has characters that YAML does not allow.
    """
    if len(content) > MAX_BYTES:
        raise MatrixError(
            Problem(
                f"{name} is larger than {MAX_BYTES // 1024} KiB, too large for a matrix file",
                hint="name the right file with --matrix FILE",
            )
        )
    try:
        source = SourceText(name, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        source = SourceText(name, content.decode("utf-8-sig", errors="replace"))
        index = len(content[: error.start].decode("utf-8-sig"))
        raise MatrixError(
            Problem(f"byte 0x{error.object[error.start]:02x} is not UTF-8", source.index(index), "save it as UTF-8")
        ) from None
    problems = [
        Problem(f"the control character U+{ord(match[0]):04X} is not allowed", source.index(match.start()), "remove it")
        for match in UNPRINTABLE.finditer(source.text)
    ]
    if problems:
        raise MatrixError(*problems[:10])
    return source


def compose(source: SourceText) -> yaml.Node:
    """Return the node tree of the only document in a text; no values are constructed.

    Raises:
        MatrixError: the text is empty, not YAML, or nested too deeply.
    """
    root: yaml.Node | None = None
    try:
        root = yaml.compose(source.text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, IndexError) as error:  # PyYAML without libyaml raises both for "\U00110000"
        raise MatrixError(_mistake(source, error)) from None
    except RecursionError:
        raise MatrixError(Problem(TOO_DEEP, source.where(0, 0), "close the brackets before it")) from None
    if root is None:
        message = "the file holds only comments" if source.text.strip() else "the file is empty"
        raise MatrixError(Problem(message, source.where(0, 0), "start with 'version: 1' and 'environments:'"))
    return root


def _mistake(source: SourceText, error: Exception) -> Problem:
    """Return a syntax error as a problem; the pure Python parser's error is preferred, as libyaml's wording varies."""
    try:
        yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as python_error:
        error = python_error
    except (yaml.YAMLError, ValueError, IndexError, RecursionError):
        pass
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return Problem("this is not YAML", source.where(0, 0))
    problem = f"{error.context} {error.problem}" if error.problem == "second occurrence" else f"{error.problem}"
    for pattern, message, hint, at_start in _MISTAKES:
        if match := re.search(pattern, problem):
            start = error.context_mark if at_start and error.context_mark else mark
            where = source.where(start.line, start.column)
            return Problem(message.format(*match.groups()), where, hint.format(*match.groups()))
    hint = "check the quotes, brackets and indentation here"
    return Problem(f"this is not YAML: {problem}", source.where(mark.line, mark.column), hint)
