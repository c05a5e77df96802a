"""The modules of the harness import each other without a circle, imports inside functions included."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from runner.backends import harness_archive

FOLDER = harness_archive.FOLDER


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the harness."""
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FOLDER.rglob("*.py")}


def relative_imports(name: str) -> Iterator[str]:
    """Yield the modules that a module imports."""
    package = name.split(".") if MODULES[name].name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in MODULES else base


def test_imports_of_the_harness_have_no_circle() -> None:
    graph = {name: set(relative_imports(name)) - {name} for name in MODULES}
    assert "harness.procfs" in graph["harness.supervisor"]
    TopologicalSorter(graph).prepare()  # raises CycleError, which shows the circle
