"""Environments of a certain run under names of their own, so that a comparison can have them as sides."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from runner.analysis.model import Dataset
from runner.core.model.cells import is_control, without_environment
from runner.core.model.variant_ids import is_variant

SEPARATOR = "@"


def split(name: str) -> tuple[str, str]:
    """Return (environment, run) of the name of a side; the run is empty if the name has none.

    >>> split("torch-2.x@20261120-104500-ab12"), split("torch-2.x"), split("torch-2.x@twin")
    (('torch-2.x', '20261120-104500-ab12'), ('torch-2.x', ''), ('torch-2.x@twin', ''))
    >>> split("jax@env:A=1"), split("jax@env:A=1@20261120-104500-ab12")
    (('jax@env:A=1', ''), ('jax@env:A=1', '20261120-104500-ab12'))
    """
    environment, separator, run = name.rpartition(SEPARATOR)
    is_run = separator and not is_control(name) and not is_variant(f"{SEPARATOR}{run}")
    return (environment, run) if is_run else (name, "")


def of_run(dataset: Dataset, environments: Collection[str]) -> Dataset:
    """Return a dataset with only some of its environments, each called ``environment@run``."""
    names = {name: f"{name}{SEPARATOR}{dataset.run}" for name in environments}
    return replace(
        dataset,
        samples=_renamed(dataset.samples, names),
        rounds=_renamed(dataset.rounds, names),
        failures=_renamed(dataset.failures, names),
        plan=tuple(
            replace(planned, cell=replace(planned.cell, environment=names[planned.cell.environment]))
            for planned in dataset.plan
            if planned.cell.environment in names
        ),
        environments=_facts(dataset, names),
    )


def with_facts_of(dataset: Dataset, environments: Collection[str]) -> Dataset:
    """Return a dataset that also has the facts of some environments as ``environment@run``."""
    names = {name: f"{name}{SEPARATOR}{dataset.run}" for name in environments}
    return replace(dataset, environments=_facts(dataset, names))


def _facts(dataset: Dataset, names: Mapping[str, str]) -> dict[str, Any]:
    known = dataset.environments
    return {**known, **{names[name]: known[name] for name in names if name in known}}


def _renamed(frame: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    kept = frame[frame["environment"].isin(names)]
    environments = [names[name] for name in kept["environment"].tolist()]
    rests = [without_environment(str(cell)) for cell in kept["cell"].tolist()]
    cells = [f"{name}/{rest}" for name, rest in zip(environments, rests, strict=True)]
    return kept.assign(cell=pd.Categorical(cells), environment=pd.Categorical(environments))
