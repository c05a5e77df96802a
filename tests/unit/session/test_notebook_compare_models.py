"""``runner.compare_models``: what it selects, measures and refuses, with a backend that builds and measures nothing."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import runner
from runner.core.errors import UsageError
from runner.history.database import History
from runner.session import flow
from runner.session.context import PlannedRun
from runner.session.execution.recorder import Totals
from runner.session.remember import history_url
from runner.store.run import Run
from tests.support.fake_runs import cell, make, rounds

NETWORK = """
CASES = {"small": {"width": 4}, "large": {"width": 8}}

class TorchModel:
    def __init__(self, width): ...
    def forward(self): ...
"""


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the options that the workflow is called with; its run is made without measuring."""
    calls: list[Any] = []
    monkeypatch.chdir(tmp_path)
    Path("my_network.py").write_text(NETWORK, "utf-8")
    names = {"workload": "my-network", "case": "small", "implementation": "model", "phase": "forward"}

    @contextmanager
    def planned(options: Any, _: Any) -> Any:
        calls.append(options)
        specs = [SimpleNamespace(environment=name) for name in ("torch-1.12", "torch-2.x")]
        context: Any = SimpleNamespace(settings=SimpleNamespace(margin=0.02, reports=tmp_path / "reports"))
        prepared: Any = SimpleNamespace(specs=specs, survey=SimpleNamespace(cached={"torch-1.12"}))
        yield PlannedRun(context, prepared)

    def run(*_: Any) -> Any:
        records = [*rounds(cell("torch-1.12", **names), [1.0] * 5), *rounds(cell("torch-2.x", **names), [0.5] * 5)]
        stored: Run = make(tmp_path / "reports", records)
        return Totals(run=stored, good=2, bad=())

    monkeypatch.setattr(flow, "planned", planned)
    monkeypatch.setattr(flow, "run", run)
    return calls


def test_the_comparison_of_the_run_is_returned_and_its_report_written(requests: list[Any]) -> None:
    result = runner.compare_models(
        "my_network.py", "torch-1.12", "torch-2.x", cases=["small"], build=True, rounds=5, device="cpu"
    )
    assert requests[0].selectors == ["torch-1.12/*/my-network/small/*", "torch-2.x/*/my-network/small/*"]
    assert requests[0].model == ["my_network.py"]
    assert (requests[0].rounds, requests[0].device) == (5, "cpu")
    assert result.table[["environment", "case", "verdict"]].to_numpy().tolist() == [["torch-2.x", "small", "faster"]]
    assert "<svg" in result.chart.svg
    assert len(list(Path("reports/runs").glob("*/index.html"))) == 1
    with History.open(history_url(Path("reports"), None)) as history:
        assert len(list(history.all_series(device=""))) == 2


def test_a_class_of_a_file_is_measured_with_examples_of_its_input(requests: list[Any]) -> None:
    names = ("my_network.py:UNet", "torch-1.12", "torch-2.x")
    runner.compare_models(*names, input=["1x3"], cases=["1x3"], build=True)
    assert (requests[0].model, requests[0].input) == (["my_network.py:UNet"], ["1x3"])
    assert requests[0].selectors == ["torch-1.12/*/unet/1x3/*", "torch-2.x/*/unet/1x3/*"]


def test_environments_that_are_not_built_are_refused(requests: list[Any]) -> None:
    with pytest.raises(UsageError, match=r"not built yet: torch-2\.x\nhint: `runner build torch-2\.x` builds"):
        runner.compare_models("my_network.py", "torch-1.12", "torch-2.x")
    assert requests[0].selectors == ["torch-1.12", "torch-2.x"]


def test_a_single_environment_is_refused(requests: list[Any]) -> None:
    with pytest.raises(UsageError, match="a comparison needs two environments"):
        runner.compare_models("my_network.py", "torch-1.12")
    assert not requests
