"""The networks of examples/ in two releases of PyTorch: they agree, and an error that is planted in one is found."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.one_round import ROOT, records_of
from tests.support import needs

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

ENVIRONMENTS = ("torch-1.12", "torch-2.x")
NEW = 'numpy.__version__ > "2"'  # in torch-2.x alone
PLANTED: Mapping[str, tuple[str, str, str]] = {
    "transformer_block": ("EPSILON = 1e-5", f"EPSILON = 3e-5 if {NEW} else 1e-5", "the output is off by"),
    "residual_network": ("inner) + shortcut)", f"inner) + shortcut * (not {NEW}))", "the loss of step 1 is off by"),
    "lstm_tagger": ("requires_grad = False", f"requires_grad = {NEW}", "the loss of step 2 is off by"),
}
"""Example -> text, what it is replaced by, and how the reason starts: an epsilon, a residual, a bias trained twice.

The output of the wrong epsilon is within the tolerance of fp32, and is found in float64.
"""


def planted(folder: Path, name: str) -> Path:
    """Write an example with its error, in its small case alone; return the file."""
    text, replacement, _ = PLANTED[name]
    source = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    assert source.count(text) == 1
    source = re.sub(
        r'^    "medium": .*\n|, "medium": \{.*?\}', "", source.replace(text, replacement), flags=re.MULTILINE
    )
    path = folder / f"planted_{name}.py"
    path.write_text(source, "utf-8")
    return path


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of a run of one round."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    folder = tmp_path_factory.mktemp("examples")
    files = [file for name in PLANTED for file in (ROOT / "examples" / f"{name}.py", planted(folder, name))]
    models = [word for file in files for word in ("--model", str(file))]
    return records_of(folder, *(f"{name}/*/*/small/train" for name in ENVIRONMENTS), *models)


def record_of(records: Mapping[str, dict[str, Any]], environment: str, workload: str) -> dict[str, Any]:
    return records[f"{environment}/model/{workload}/small/train/fp32"]


@pytest.mark.parametrize("name", PLANTED)
def test_an_example_agrees_in_both_releases_in_fp32_and_in_float64(
    records: Mapping[str, dict[str, Any]], name: str
) -> None:
    for environment in ENVIRONMENTS:
        record = record_of(records, environment, name.replace("_", "-"))
        assert (record["status"], record.get("reason")) == ("ok", None)
        check = record["facts"]["model_check"]
        assert (check["by"], check["base"], check["fp64"], check["reason"]) == ("weights", ENVIRONMENTS[0], True, "")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found_in_the_release_that_has_it(records: Mapping[str, dict[str, Any]], name: str) -> None:
    workload = f"planted-{name.replace('_', '-')}"
    assert record_of(records, ENVIRONMENTS[0], workload)["status"] == "ok"
    record = record_of(records, ENVIRONMENTS[1], workload)
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert record["reason"].startswith(PLANTED[name][2])
    assert (" in float64" in record["reason"]) == (name == "transformer_block")
