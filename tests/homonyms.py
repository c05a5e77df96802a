"""Refuse two public classes with the same name, and module names that more than two packages use.

``--count`` prints every class and module name that stands more than once, the allowed ones too. The harness is left
out: it is another program, and its adapters have the same classes for each framework on purpose.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path("runner")
ALLOWED_CLASSES: dict[str, str] = {}
"""Public class names that may stand twice, each with its reason."""
ALLOWED_MODULES: dict[str, str] = {}
"""Module names that more than two packages may have, each with its reason."""
MAX_PACKAGES = 2

Places = dict[str, list[str]]


def modules() -> list[Path]:
    """Return the files of the program without the harness."""
    return [path for path in sorted(ROOT.rglob("*.py")) if "harness" not in path.relative_to(ROOT).parts]


def classes_by_name(paths: list[Path]) -> Places:
    """Return the places of each public class that stands at the top of a module."""
    places: Places = defaultdict(list)
    for path in paths:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    return {name: lines for name, lines in places.items() if len(lines) > 1}


def packages_by_module(paths: list[Path]) -> Places:
    """Return the packages of each module name that several packages use; a folder counts as a module."""
    places: Places = defaultdict(list)
    for path in paths:
        name = path.parent.name if path.stem == "__init__" else path.stem
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if path.parent != ROOT and name != package:
            places[name].append(package)
        elif path.stem == "__init__" and path.parent.parent == ROOT:
            places[name].append(f"{package} itself")
    return {name: sorted(set(packages)) for name, packages in places.items() if len(set(packages)) > 1}


def main(arguments: list[str]) -> int:
    """Print each name that may not stand again, with its places; return 1 where there is any."""
    paths = modules()
    classes, by_module = classes_by_name(paths), packages_by_module(paths)
    if "--count" not in arguments:
        classes = {name: places for name, places in classes.items() if name not in ALLOWED_CLASSES}
        by_module = {
            name: packages
            for name, packages in by_module.items()
            if len(packages) > MAX_PACKAGES and name not in ALLOWED_MODULES
        }
    for name, places in classes.items():
        print(f"{places[0]}: class {name} stands also in {', '.join(places[1:])}: rename one")  # noqa: T201
    for name, packages in by_module.items():
        print(f"module name {name} is used by {', '.join(packages)}: rename all but two")  # noqa: T201
    return 1 if classes or by_module else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
