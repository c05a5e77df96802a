"""What the facts about a machine mean, and the fix for each thing that is not as it should be."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.backends.docker.survey import engine
from runner.backends.interpreters import remedy
from runner.core.errors import Problem
from runner.core.model import Gpu, Request, Skip, Spec, Survey
from runner.gpu import detect
from runner.matrix import parse
from runner.plan.planner import plan
from runner.workflows.doctor import Examination
from runner.workflows.doctor.findings import Finding, judge
from runner.workflows.doctor.inspect import Facts, Outlook, has_headers, look

ENGINE: dict[str, Any] = {
    "version": "28.5",
    "system": "Debian",
    "storage": "overlay2",
    "root": "/var/lib/docker",
    "rootless": False,
    "cores": 8,
    "memory_bytes": 64_000_000_000,
    "limits_memory": True,
    "gpus": False,
    "free_bytes": 90_000_000_000,
}
FACTS = Facts(
    common={
        "cpu": "EPYC",
        "cores": 8,
        "logical_cores": 16,
        "memory_bytes": 64_000_000_000,
        "governor": "performance",
    },
    system={"os": "Debian GNU/Linux 12 (bookworm)", "glibc": "2.36", "architecture": "x86_64"},
    physical_cores=8,
    quota=None,
    memory=50_000_000_000,
    memory_limit=None,
    gpus=(),
    trouble=None,
    engine=ENGINE,
    interpreters={"3.6": "/p/3.6/bin/python3.6"},
    headers=frozenset({"3.6"}),
    compiler="/usr/bin/c++",
    cache="/home/a/.cache/matrix-runner",
    cache_free=5,
)
H200 = Gpu(uuid="GPU-1", name="H200", capability=(9, 0), driver="580.65.06")
MATRIX = """\
version: 1
workloads: {rnn-step: {cases: [lstm-b32-h128], phases: [train]}}
environments:
  torch-1.0: {framework: torch, release: "1.0.0", image: x}
  torch-2.x: {framework: torch, release: "2.*", image: x}
"""


def outlook(name: str = "docker", skips: tuple[str, ...] = (), no_room: str | None = None, **survey: Any) -> Outlook:
    matrix = parse(MATRIX.encode(), "m.yaml")
    lost = {environment: Skip("no-interpreter", "no Python") for environment in skips}
    made = plan(matrix, Request(environments=tuple(matrix.environments), backend=name), lost)
    spec = Spec(environment="torch-1.0", framework="torch", release="1.0.0", disk=1_500_000_000)
    found = Survey(skips=lost, free=90_000_000_000, **survey)
    return Outlook(name=name, plan=made, survey=found, specs=(spec,), pythons=("3.6",), no_room=no_room)


BOTH = ("torch-1.0", "torch-2.x")


def about(what: str, outlooks: tuple[Outlook, ...] = (), **changes: Any) -> Finding:
    """Return the one finding about a part of a machine."""
    found = [one for one in judge(replace(FACTS, **changes), outlooks) if one.what == what]
    assert len(found) == 1
    return found[0]


def common(**changes: Any) -> dict[str, Any]:
    return {**FACTS.common, **changes}


def test_a_good_machine_without_a_gpu() -> None:
    found = {one.what: one.state for one in judge(FACTS, (outlook(),))}
    assert found == {
        "cpu": "ok",
        "memory": "ok",
        "gpu": "missing",
        "engine": "ok",
        "python 3.6": "ok",
        "compiler": "ok",
        "with docker": "ok",
        "disk of docker": "ok",
    }


def test_what_is_not_ok_has_a_fix_and_what_is_ok_has_none() -> None:
    bad = replace(
        FACTS,
        common=common(cores=2, governor="powersave"),
        quota=2.0,
        memory=1,
        engine=None,
        interpreters={"3.6": None},
        compiler=None,
    )
    for facts in (FACTS, bad, replace(FACTS, gpus=(H200,)), replace(FACTS, trouble=Problem("no driver"))):
        for one in judge(facts, (outlook(), outlook("venv", BOTH, no_room="no room", images={"x": "gone; pull it"}))):
            assert one.state in {"ok", "warning", "missing"}
            assert bool(one.fix) == (one.state != "ok"), one
            assert one.found


def test_fewer_cores_than_there_are() -> None:
    found = about("cpu", common=common(cores=2), quota=2.5)
    assert (found.state, found.found) == (
        "warning",
        "EPYC: 2 of 8 cores may be used (16 logical); the control group may use 2.5 at a time",
    )


@pytest.mark.parametrize(("governor", "told"), [(None, False), ("performance", False), ("schedutil", True)])
def test_a_clock_that_follows_the_load(governor: str | None, told: bool) -> None:  # noqa: FBT001
    found = [one for one in judge(replace(FACTS, common=common(governor=governor)), ()) if one.what == "frequency"]
    assert [one.state for one in found] == ["warning"] * told


def test_memory_is_what_is_available_and_allowed() -> None:
    assert about("memory").found == "50.0 GB of 64.0 GB available"
    found = about("memory", memory_limit=2_000_000_000)
    assert (found.state, found.found) == (
        "warning",
        "2.0 GB of 64.0 GB available; the control group may hold 2.0 GB",
    )


def test_gpus_and_what_hides_them() -> None:
    found = about("gpu", gpus=(H200,))
    assert (found.state, found.found) == ("ok", "cuda:0: H200, compute capability 9.0, driver 580.65.06")
    assert about("gpu in containers", gpus=(H200,)).state == "missing"
    able = {one.what for one in judge(replace(FACTS, gpus=(H200,), engine={**ENGINE, "gpus": True}), ())}
    assert "gpu in containers" not in able
    found = about("gpu", trouble=Problem("no driver answers"))
    assert (found.state, found.found) == ("missing", "no driver answers")
    assert "install NVIDIA's driver" in str(found.fix)
    found = about("gpu", trouble=Problem("CUDA_VISIBLE_DEVICES is '7'", hint="there are 0 and 1"))
    assert (found.found, found.fix) == ("CUDA_VISIBLE_DEVICES is '7'", "there are 0 and 1")
    assert about("gpu").found == "none"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("hidden", [None, ""])
def test_a_device_without_a_driver_is_no_machine_without_a_device(
    told: bool,  # noqa: FBT001
    hidden: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detect, "gpus", lambda: ())
    monkeypatch.setattr(detect, "on_the_bus", lambda: told)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    found = look((), None)
    assert found.gpus == ()
    assert ("no driver answers" in str(found.trouble)) == (told and hidden is None)


def test_an_engine_that_is_not_there_or_cannot_limit_memory() -> None:
    assert about("engine", engine=None).state == "missing"
    found = about("engine", engine={**ENGINE, "rootless": True, "limits_memory": False})
    assert found.state == "warning"
    assert "Docker 28.5 rootless, overlay2 in /var/lib/docker" in found.found


def test_interpreters_headers_and_a_compiler() -> None:
    assert about("python 3.6", interpreters={"3.6": None}) == Finding(
        "python 3.6", "missing", "none; only virtual environments need it", "`pyenv install 3.6`"
    )
    assert about("python 3.6", headers=frozenset()).state == "warning"
    assert about("compiler", compiler=None).state == "missing"
    assert [remedy("3.7"), remedy("3.8"), remedy("3.11")] == [
        "pyenv install 3.7",
        "uv python install 3.8",
        "uv python install 3.11",
    ]


def test_headers_lie_beside_the_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3.6"
    assert not has_headers(python, "3.6")
    folder = tmp_path / "include" / "python3.6m"
    folder.mkdir(parents=True)
    (folder / "Python.h").touch()
    assert has_headers(python, "3.6")
    assert not has_headers(python, "3.7")


def test_images_that_are_here_that_can_be_had_and_that_cannot() -> None:
    images = {"a:1": "here", "b:1": "registry", "c:1": "c:1 cannot be pulled (no such host); pull it elsewhere"}
    found = [one for one in judge(FACTS, (outlook(images=images),)) if one.what.startswith("image")]
    assert found == [
        Finding("images", "ok", "on this engine: a:1"),
        Finding("images", "ok", "not here, and can be pulled: b:1"),
        Finding("image", "missing", "c:1 cannot be pulled (no such host)", "pull it elsewhere"),
    ]


def test_environments_of_which_nothing_runs_are_named() -> None:
    assert about("with docker", (outlook(),)).state == "ok"
    some = about("with venv", (outlook("venv", ("torch-1.0",)),))
    assert some.state == "warning"
    assert some.found.endswith("in 1 of 2 environments; none in torch-1.0")
    assert about("with venv", (outlook("venv", BOTH),)).state == "missing"


def test_room_on_the_disk() -> None:
    found = about("disk of docker", (outlook(),))
    assert found.found == "1.5 GB needed for 1 environment to be made, 90.0 GB free in /var/lib/docker"
    assert about("disk of venv", (outlook("venv"),)).found.endswith("free in /home/a/.cache/matrix-runner")
    assert about("disk of docker", (outlook(no_room="they need 2 TB, 1 GB are free"),)).state == "missing"


def examined(*outlooks: Outlook) -> Examination:
    return Examination(facts=FACTS, findings=judge(FACTS, outlooks), outlooks=outlooks)


@pytest.mark.parametrize(
    ("outlooks", "ready", "verdict"),
    [
        ((outlook(), outlook("venv")), True, "`runner run` takes docker and measures"),
        ((outlook("venv"),), True, "`runner run` takes venv and measures"),
        ((outlook(skips=BOTH), outlook("venv")), True, "`--backend venv` would do"),
        ((outlook(no_room="none"), outlook("venv")), True, "`--backend venv` would do"),
        ((outlook(skips=BOTH), outlook("venv", BOTH)), False, "nothing runs here"),
        ((outlook("venv", no_room="none"),), False, "nothing runs here"),
    ],
)
def test_ready_where_some_backend_would_do(outlooks: tuple[Outlook, ...], ready: bool, verdict: str) -> None:  # noqa: FBT001
    found = examined(*outlooks)
    assert found.ready is ready
    assert verdict in found.verdict
    assert found.text().splitlines()[-1] == found.verdict


def test_the_table_shows_every_finding_with_its_fix() -> None:
    found = examined(outlook(skips=BOTH), outlook("venv"))
    text = " ".join(found.text(400).split())
    for one in found.findings:
        assert f"{one.state} {one.what} {one.found}" in text
        assert not one.fix or f"fix: {one.fix}" in text


def test_json_has_a_version_and_describes_the_machine_for_a_plan() -> None:
    facts = replace(FACTS, gpus=(H200,))
    found = Examination(facts=facts, findings=judge(facts, ()), outlooks=(outlook("venv", ("torch-1.0",)),)).json()
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        **found,
        "machine": json.loads(json.dumps(found["machine"])),
    }
    assert (found["version"], found["ready"], found["backend"]) == (1, True, "venv")
    machine = found["machine"]
    assert (machine["cpu"], machine["cores"], machine["memory_bytes"]) == ("EPYC", 8, 64_000_000_000)
    assert (machine["os"], machine["glibc"], machine["architecture"]) == (*FACTS.system.values(),)
    assert Gpu(**{**machine["gpus"][0], "capability": tuple(machine["gpus"][0]["capability"])}) == H200
    assert (machine["engine"]["version"], machine["interpreters"]) == ("28.5", {"3.6": "/p/3.6/bin/python3.6"})
    backend = found["backends"]["venv"]
    assert backend["unavailable"] == {"torch-1.0": {"code": "no-interpreter", "reason": "no Python"}}
    assert backend["environments"] == ["torch-2.x"]
    assert {*found["findings"][0]} == {"what", "state", "found", "fix"}


def test_what_an_engine_says_of_itself() -> None:
    info = {
        "ServerVersion": "28.5",
        "Driver": "overlay2",
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
        "MemTotal": 7,
        "NCPU": 3,
        "MemoryLimit": False,
        "Runtimes": {"runc": {}},
        "DiscoveredDevices": None,
    }
    found = engine(info)
    assert (found["version"], found["storage"], found["cores"], found["memory_bytes"]) == ("28.5", "overlay2", 3, 7)
    assert (found["rootless"], found["limits_memory"], found["gpus"]) == (True, False, False)
    assert engine({**info, "Runtimes": {"nvidia": {}}})["gpus"]
    assert engine({**info, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]})["gpus"]
    assert not engine({**info, "DiscoveredDevices": [{"Source": "cdi", "ID": "vendor.com/nic=0"}]})["gpus"]
