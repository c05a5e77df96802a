"""The example for Kubernetes fits the schema of Dask's operator, and the commands in it exist."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed.cli.dask_scheduler import main as dask_scheduler
from jsonschema import ValidationError, validate  # type: ignore[import-untyped]
from typer.testing import CliRunner

from runner import cli
from runner.hosts.certificates import FILES, make
from runner.hosts.executors.dask import scheduler_address

SCHEMA = json.loads(Path(__file__).with_name("daskcluster.schema.json").read_text())
FILE = Path(__file__).parents[4] / "examples/kubernetes/dask-cluster.yaml"


@pytest.fixture
def cluster() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return manifest


def container_of(cluster: dict[str, Any], role: str) -> dict[str, Any]:
    (container,) = cluster["spec"][role]["spec"]["containers"]
    return dict(container)


def test_the_example_fits_the_schema_and_one_with_a_mistake_does_not(cluster: dict[str, Any]) -> None:
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    validate(cluster, SCHEMA)
    number, unknown = deepcopy(cluster), deepcopy(cluster)
    container_of(number, "worker")["resources"]["limits"]["nvidia.com/gpu"] = 1
    container_of(unknown, "worker")["volumeMounts"][0]["readonly"] = True
    for mistaken in (number, unknown):
        with pytest.raises(ValidationError):
            validate(mistaken, SCHEMA)


def test_the_commands_of_the_containers_exist_and_reach_each_other(
    cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "certificates")
    words = container_of(cluster, "scheduler")["args"]
    dask, scheduler, *options = (word.replace("/certificates", f"{tmp_path}/certificates") for word in words)
    assert (dask, scheduler) == ("dask", "scheduler")
    parsed = dask_scheduler.make_context("scheduler", options)
    assert (parsed.params["port"], parsed.params["protocol"]) == ("8786", "tls")
    served: list[tuple[Any, ...]] = []
    monkeypatch.setattr("runner.hosts.worker.serve", lambda *arguments: served.append(arguments))
    program, *words = container_of(cluster, "worker")["args"]
    result = CliRunner().invoke(cli.app, words, standalone_mode=False)
    assert (program, result.exception, result.return_value) == ("runner", None, 0)
    ((rest, device, certificates, _),) = served
    assert scheduler_address(rest, certificates) == f"tls://{cluster['metadata']['name']}-scheduler:8786"
    assert (device, certificates) == ("cuda", Path("/certificates"))


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_both_have_the_certificates_of_the_secret(cluster: dict[str, Any], role: str) -> None:
    volumes = {volume["name"]: volume for volume in cluster["spec"][role]["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container_of(cluster, role)["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert volumes["certificates"]["secret"]["secretName"] == "matrix-runner-certificates"
    assert mounts["certificates"] == "/certificates"
    named = {word.rpartition("/")[2] for word in container_of(cluster, "scheduler")["args"] if "/certificates/" in word}
    assert named == set(FILES)
