"""Each stored shape has one declaration: the dataclass that the program computes with."""

from pathlib import Path

import runner

WITHOUT_A_VALUE: frozenset[str] = frozenset()
"""Modules that may declare a typed dictionary for a check alone; each with its reason."""


def test_no_shape_is_declared_beside_its_value() -> None:
    folder = Path(runner.__file__).parent
    declaring = {
        str(path.relative_to(folder)) for path in folder.rglob("*.py") if "with_config(" in path.read_text("utf-8")
    }
    assert declaring == WITHOUT_A_VALUE
