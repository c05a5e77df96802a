"""Refuse a harness file that Python 3.5 could not parse: that needs no interpreter of that age."""

import sys
from pathlib import Path

import parso


def problems(text: str) -> list[str]:
    """Return ``line:column: message`` of everything that the grammar of Python 3.5 refuses."""
    grammar = parso.load_grammar(version="3.5")
    errors = grammar.iter_errors(grammar.parse(text))  # type: ignore[attr-defined]  # parso has no stubs
    return [f"{e.start_pos[0]}:{e.start_pos[1] + 1}: {e.message}" for e in errors]


def main(paths: list[str]) -> int:
    """Print the problems of each file; return 1 if there is one."""
    lines = [f"{path}:{problem}" for path in paths for problem in problems(Path(path).read_text("utf-8"))]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
