"""Refuse a harness file that Python 3.5 could not parse: no interpreter of that age is needed."""

import sys
from pathlib import Path

import parso


def problems(text: str) -> list[str]:
    """Return ``line:column: message`` of everything the grammar of Python 3.5 refuses."""
    grammar = parso.load_grammar(version="3.5")
    found = grammar.iter_errors(grammar.parse(text))  # type: ignore[attr-defined]  # parso knows of no stubs
    return [f"{e.start_pos[0]}:{e.start_pos[1] + 1}: {e.message}" for e in found]


def main(paths: list[str]) -> int:
    """Print the problems of each file; return 1 if there are any."""
    lines = [f"{path}:{found}" for path in paths for found in problems(Path(path).read_text("utf-8"))]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
