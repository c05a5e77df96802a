"""Networks of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.example_networks import NETWORKS
from tests.frameworks.one_round import ROOT, records_of
from tests.frameworks.planted_errors import assert_found, chosen, records_with_errors, require_images

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

PROGRAMS = [
    (name, environment, variant)
    for name, network in NETWORKS.items()
    for environment, variants in network.programs.items()
    for variant in variants
]
ERRORS = [(name, error) for name, network in NETWORKS.items() for error in network.planted]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of all networks in all frameworks."""
    require_images(request.config)
    models = [word for network in NETWORKS.values() for word in ("--model", str(ROOT / "examples" / network.file))]
    cells = [f"{environment}/{variant}/{name}/small/*" for name, environment, variant in PROGRAMS]
    return records_of(tmp_path_factory.mktemp("together"), *cells, *models)


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of the copies with errors."""
    require_images(request.config)
    planted = {network.file: (chosen(network.planted, request.config), network.base) for network in NETWORKS.values()}
    return records_with_errors(tmp_path_factory.mktemp("planted"), planted)


@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize(("name", "environment", "variant"), PROGRAMS)
def test_a_framework_agrees_with_float64(
    together: Mapping[str, dict[str, Any]], name: str, environment: str, variant: str, phase: str
) -> None:
    record = together[f"{environment}/{variant}/{name}/small/{phase}/fp32"]
    assert (record["status"], record.get("reason")) == ("ok", None)
    check, fp64 = record["facts"]["model_check"], (environment, variant) != ("jax", "fused")
    assert (check["by"], check["base"], check["fp64"]) == ("weights", "NumPy in torch-1.12", fp64)
    assert ("state" in check["tolerance"]) == (phase == "train" and has_several_programs(name, environment))
    assert name != "encoder" or record["facts"]["forward_error"] < 1e-5


def has_several_programs(name: str, environment: str) -> bool:
    """Return True if a network has several programs in an environment's framework, whose states are compared."""
    framework = environment.partition("-")[0]
    return sum(each == name and other.partition("-")[0] == framework for each, other, _ in PROGRAMS) > 1


@pytest.mark.parametrize(("name", "error"), ERRORS)
def test_a_planted_error_is_found_where_it_is(with_errors: Mapping[str, dict[str, Any]], name: str, error: str) -> None:
    network = NETWORKS[name]
    assert_found(with_errors, network.file, error, network.planted, network.base)
