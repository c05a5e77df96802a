"""The shipped cases that are networks: recurrent ones, with a loss and an optimiser."""

from collections.abc import Mapping
from typing import Any

from runner.catalog.cases import CASES, is_kernel

NETWORKS: Mapping[str, Mapping[str, Any]] = {name: case for name, case in CASES.items() if not is_kernel(case)}
