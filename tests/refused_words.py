"""Find words in texts that the project does not use, and changes that are formatted without `report/wording.py`.

Looked at are the texts of the program, literals with a space in them, without docstrings, and the text of the
templates. Keys of files, options and ids are one word, and stay. The harness runs elsewhere and has words of its own.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFUSED = {
    r"(?<!LSTM )(?<!RNN )(?<!GRU )(?<!Select a )\bcells?\b": "test",
    r"\bquality issues?\b": "warning",
    r"\bin turns\b": "alternately",
    r"\bA/A pairs?\b": "A/A control",
    r"\btwins?\b": "A/A control",
    r"\bgrades?\b": "trust",
    r"\binconclusive\b": "can't tell",
    r"\bdoubts?\b": "warning",
    r"\btimes (faster|slower|more|less)\b": "what wording.change returns",
}
"""Pattern -> what to write instead."""
CHANGES = "a ratio by wording.change or wording.change_range: '2.77x faster', '5.2 % slower'"
SHARES = "a share by units.percent: '5.2 %'"
WRITER = "runner/report/wording.py"
INTERNAL = ("a cell that takes no turns waits for one",)
"""Messages of mistakes of the program itself, which nobody sees."""


def refused(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, text, what to write) of every refused text of a file."""
    if path.suffix == ".py":
        yield from _of_code(ast.parse(path.read_text("utf-8")), is_writer=path.as_posix().endswith(WRITER))
    else:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            text = re.sub(r"{[{%#].*?[}%#]}|<[^>]*>", " ", line)
            yield from ((number, *words) for words in _words(text))


def _of_code(tree: ast.Module, *, is_writer: bool) -> Iterator[tuple[int, str, str]]:
    docstrings = {id(text) for node in ast.walk(tree) for text in _docstrings(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if " " in node.value and node.value not in INTERNAL:
                yield from ((node.lineno, *words) for words in _words(node.value))
        elif isinstance(node, ast.FormattedValue) and not is_writer and _is_formatted_ratio(node):
            yield node.lineno, ast.unparse(node.value), CHANGES
        elif isinstance(node, ast.FormattedValue) and node.format_spec and ast.unparse(node.format_spec).endswith("%'"):
            yield node.lineno, ast.unparse(node.value), SHARES


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings that stand alone in the body of a module, a class or a function."""
    for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.value


def _is_formatted_ratio(node: ast.FormattedValue) -> bool:
    """Return whether a ratio is written with digits of its own."""
    names = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node.value)}
    return node.format_spec is not None and "ratio" in names


def _words(text: str) -> Iterator[tuple[str, str]]:
    for pattern, instead in REFUSED.items():
        if match := re.search(pattern, text):
            yield match.group(), instead


def main(arguments: list[str]) -> int:
    """Print each refused text with its place and what to write instead; return 1 where there is any."""
    hits = [(path, *hit) for path in map(Path, arguments) for hit in refused(path)]
    for path, line, text, instead in hits:
        print(f"{path}:{line}: {text!r}: write {instead}")  # noqa: T201
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
