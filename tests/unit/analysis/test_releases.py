"""Names of releases: those of two environments differ, by what was named beside the release where that is known."""

import pandas as pd
import pytest

from runner.analysis.model import Dataset
from runner.analysis.releases import releases


@pytest.mark.parametrize(
    ("versions", "names"),
    [
        ({"numpy-2.3.5": "2.3.5", "numpy-2.4.0": "2.4.0"}, ["NumPy 2.3.5", "NumPy 2.4.0"]),
        (
            {"numpy-2.3.5-numba-0.65.0": "2.3.5", "numpy-2.3.5-numba-0.66.0": "2.3.5"},
            ["NumPy 2.3.5 (numba-0.65.0)", "NumPy 2.3.5 (numba-0.66.0)"],
        ),
        (
            {"numpy-2.3.5": "2.3.5", "numpy-2.3.5-py3.10": "2.3.5"},
            ["NumPy 2.3.5 (numpy-2.3.5)", "NumPy 2.3.5 (py3.10)"],
        ),
        ({"np-a": "2.3.5", "np-b": "2.3.5", "np-a@twin": "2.3.5"}, ["NumPy 2.3.5 (np-a)", "NumPy 2.3.5 (np-b)"]),
    ],
)
def test_names(versions: dict[str, str], names: list[str]) -> None:
    rounds = pd.DataFrame({"environment": list(versions), "framework": "numpy"})
    facts = {name: {"framework": "numpy", "version": version} for name, version in versions.items()}
    dataset = Dataset(run="run", samples=rounds, rounds=rounds, failures=rounds, plan=(), environments=facts)
    made = releases(dataset)
    assert [made[name].name for name in versions if "@" not in name] == names
    assert [made[name].short for name in versions if "@" not in name] == [name[len("NumPy ") :] for name in names]
