"""The matrix file: reading it, its schema, and selecting from it."""

from runner.catalog.cases import WORKLOADS
from runner.matrix.load import load, parse
from runner.matrix.models import (
    FRAMEWORK_ALIASES,
    FRAMEWORKS,
    Environment,
    Exclude,
    Framework,
    GpuSettings,
    Matrix,
    Measure,
    Phase,
    Preset,
    Selector,
    Variant,
    WorkloadChoice,
    WorkloadName,
    schema,
)
from runner.matrix.select import choose_cells, select_environments, split_selectors

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
    "Phase",
    "Preset",
    "Selector",
    "Variant",
    "WorkloadChoice",
    "WorkloadName",
    "choose_cells",
    "load",
    "parse",
    "schema",
    "select_environments",
    "split_selectors",
]
