"""Read the matrix file, and select environments and cells from it.

- ``load`` reads and checks a file; it reports every mistake with its place, through ``errors`` with
  ``explanations``, ``patterns`` and ``exclusions``.
- ``models`` has the keys of the file, ``environments`` those of an environment, and ``fields`` the types of values.
- ``yaml_source`` and ``yaml_tree`` parse YAML and keep the place of every value.
- ``select`` finds the environments and the cells that selectors name.
"""

from runner.catalog.cases import WORKLOADS
from runner.matrix.environments import Environment
from runner.matrix.fields import FRAMEWORK_ALIASES, FRAMEWORKS, Framework, WorkloadName
from runner.matrix.load import load, parse, position
from runner.matrix.models import (
    Exclude,
    GpuSettings,
    Matrix,
    Measure,
    Nightly,
    Preset,
    Selector,
    WorkloadChoice,
    schema,
)
from runner.matrix.select import choose_cells, select_environments, split_selectors
from runner.matrix.sources import Variant

__all__ = [
    "FRAMEWORKS",
    "FRAMEWORK_ALIASES",
    "WORKLOADS",
    "Environment",
    "Exclude",
    "Framework",
    "GpuSettings",
    "Matrix",
    "Measure",
    "Nightly",
    "Preset",
    "Selector",
    "Variant",
    "WorkloadChoice",
    "WorkloadName",
    "choose_cells",
    "load",
    "parse",
    "position",
    "schema",
    "select_environments",
    "split_selectors",
]
