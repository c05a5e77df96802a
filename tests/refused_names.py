"""Refuse identifiers that do not say what they hold; ``--count`` prints how often each still stands.

A local is named after what it is: ``matches``, ``medians_by_cell``, ``elapsed``. Checked are the names that code binds:
variables, parameters, attributes, fields, functions, classes and modules. Texts and keys of files are not looked at.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REFUSED = {
    "found": "name the value: matches, cell, result, path",
    "one": "name the element: row, cell, record",
    "told": "announced, request, reported",
    "said": "message, output, outputs",
    "own": "name what belongs to it: own_cores, settings",
    "whole": "entire text, total, full_case",
    "place": "index, position, settings",
    "most": "max_rounds, limit, largest",
    "least": "min_rounds, minimum",
    "beside": "published, device_time, aa_pairs",
    "ahead": "precompile, compile_cache",
    "aside": "run_concurrently",
    "calm": "cooling, thermal_guard",
    "keeper": "recorder",
    "begun": "header, started, first_round",
    "further": "stopping_rule, extra_round",
    "wanted": "requested, selected, expected",
    "asked": "request, requested",
    "elsewhere": "remote, other_machine",
    "afterwards": "results, report",
    "former": "baseline, previous",
    "formers": "baselines",
    "doubts": "quality_issues",
    "troubles": "gpu_errors",
    "spent": "elapsed",
    "proven": "already_verified",
    "given_up": "abandoned",
    "thing": "item",
    "things": "items",
}


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of every name that the code binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.rpartition(".")[2], node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def refused(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of every refused name that a file binds; its module name counts as bound in line 1."""
    if path.stem.strip("_").lower() in REFUSED:
        yield path.stem, 1
    for name, line in bound_names(ast.parse(path.read_text("utf-8"))):
        if name.strip("_").lower() in REFUSED:
            yield name, line


def main(arguments: list[str]) -> int:
    """Print each refused name with its place and what to write instead; return 1 where there is any."""
    paths = [Path(argument) for argument in arguments if argument != "--count"]
    hits = [(path, name, line) for path in paths for name, line in refused(path)]
    if "--count" in arguments:
        for name, count in Counter(name.strip("_").lower() for _, name, _ in hits).most_common():
            print(f"{count:5} {name}")  # noqa: T201
        return 0
    for path, name, line in hits:
        print(f"{path}:{line}: {name}: {REFUSED[name.strip('_').lower()]}")  # noqa: T201
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
