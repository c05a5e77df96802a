"""``runner doctor``: what the facts about a machine mean, and the fix for what is missing."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.backends.docker.survey import engine
from runner.backends.interpreters import remedy
from runner.core.errors import Problem
from runner.core.model import Gpu, Request, Skip, Spec, Survey
from runner.core.model.provisioning import ImageState
from runner.gpu import detect
from runner.gpu.clocks.preconditions import Announcement
from runner.machine.doctor import Examination
from runner.machine.doctor.findings import Finding, judge
from runner.machine.doctor.inspect import MachineFacts, Outlook, has_headers, read_facts
from runner.matrix import parse
from runner.plan.planner import plan

ENGINE: dict[str, Any] = {
    "name": "Docker",
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
FACTS = MachineFacts(
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
    gpu_problem=None,
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
    unavailable = {environment: Skip("no-interpreter", "no Python") for environment in skips}
    request = Request(environments=tuple(matrix.environments), backend=name)
    spec = Spec(environment="torch-1.0", framework="torch", release="1.0.0", disk=1_500_000_000)
    return Outlook(
        name=name,
        plan=plan(matrix, request, unavailable),
        survey=Survey(skips=unavailable, free=90_000_000_000, **survey),
        specs=(spec,),
        pythons=("3.6",),
        no_room=no_room,
    )


BOTH = ("torch-1.0", "torch-2.x")


def finding_of(name: str, outlooks: tuple[Outlook, ...] = (), **changes: Any) -> Finding:
    """Return the one finding about a part of a machine."""
    (finding,) = [finding for finding in judge(replace(FACTS, **changes), outlooks) if finding.name == name]
    return finding


def common(**changes: Any) -> dict[str, Any]:
    return {**FACTS.common, **changes}


def test_a_good_machine_misses_a_gpu_alone() -> None:
    assert {finding.name: finding.state for finding in judge(FACTS, (outlook(),))} == {
        "cpu": "ok",
        "memory": "ok",
        "gpu": "missing",
        "engine": "ok",
        "python 3.6": "ok",
        "compiler": "ok",
        "with docker": "ok",
        "disk of docker": "ok",
    }


def test_only_findings_that_are_not_ok_have_a_fix() -> None:
    bad = replace(
        FACTS,
        common=common(cores=2, governor="powersave"),
        quota=2.0,
        memory=1,
        engine=None,
        interpreters={"3.6": None},
        compiler=None,
    )
    for facts in (FACTS, bad, replace(FACTS, gpus=(H200,)), replace(FACTS, gpu_problem=Problem("no driver"))):
        venv = outlook("venv", BOTH, no_room="no room", images={"x": ImageState("unavailable", "gone", "pull it")})
        for finding in judge(facts, (outlook(), venv)):
            assert finding.state in {"ok", "warning", "missing"}
            assert bool(finding.fix) == (finding.state != "ok"), finding
            assert finding.detail


def test_what_a_run_does_to_clocks_is_a_finding_of_its_own() -> None:
    locked, left = Announcement("locks the clocks"), Announcement("process 7 computes", "wait")
    docker, venv = replace(outlook(), clocks=(locked, left)), replace(outlook("venv"), clocks=(locked, left))
    findings = [finding for finding in judge(FACTS, (docker, venv)) if finding.name == "gpu clocks"]
    assert findings == [
        Finding("gpu clocks", "ok", "locks the clocks"),
        Finding("gpu clocks", "warning", "process 7 computes", "wait"),
    ]


def test_fewer_usable_cores_are_a_warning_with_the_quota() -> None:
    finding = finding_of("cpu", common=common(cores=2), quota=2.5)
    assert (finding.state, finding.detail) == (
        "warning",
        "EPYC: 2 of 8 cores may be used (16 logical); the control group may use 2.5 at a time",
    )


@pytest.mark.parametrize(("governor", "warned"), [(None, False), ("performance", False), ("schedutil", True)])
def test_a_governor_other_than_performance_is_a_warning(governor: str | None, warned: bool) -> None:  # noqa: FBT001
    findings = judge(replace(FACTS, common=common(governor=governor)), ())
    assert [finding.state for finding in findings if finding.name == "frequency"] == ["warning"] * warned


def test_memory_is_limited_by_the_control_group() -> None:
    assert finding_of("memory").detail == "46.6 GiB of 59.6 GiB available"
    finding = finding_of("memory", memory_limit=2_000_000_000)
    assert (finding.state, finding.detail) == (
        "warning",
        "1.9 GiB of 59.6 GiB available; the control group may use 1.9 GiB",
    )


def test_gpus_are_listed_or_the_problem_and_its_fix() -> None:
    finding = finding_of("gpu", gpus=(H200,))
    assert (finding.state, finding.detail) == ("ok", "cuda:0: H200, compute capability 9.0, driver 580.65.06")
    assert finding_of("gpu in containers", gpus=(H200,)).state == "missing"
    findings = judge(replace(FACTS, gpus=(H200,), engine={**ENGINE, "gpus": True}), ())
    assert "gpu in containers" not in {finding.name for finding in findings}
    finding = finding_of("gpu", gpu_problem=Problem("no driver answers"))
    assert (finding.state, finding.detail) == ("missing", "no driver answers")
    assert "install NVIDIA's driver" in str(finding.fix)
    finding = finding_of("gpu", gpu_problem=Problem("CUDA_VISIBLE_DEVICES is '7'", hint="there are 0 and 1"))
    assert (finding.detail, finding.fix) == ("CUDA_VISIBLE_DEVICES is '7'", "there are 0 and 1")
    assert finding_of("gpu").detail == "none"


@pytest.mark.parametrize("on_the_bus", [True, False])
@pytest.mark.parametrize("hidden", [None, ""])
def test_a_device_without_a_driver_is_a_problem_unless_gpus_are_hidden(
    on_the_bus: bool,  # noqa: FBT001
    hidden: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detect, "gpus", lambda: ())
    monkeypatch.setattr(detect, "on_the_bus", lambda: on_the_bus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    facts = read_facts((), None)
    assert facts.gpus == ()
    assert ("no driver answers" in str(facts.gpu_problem)) == (on_the_bus and hidden is None)


def test_no_engine_is_missing_and_one_without_memory_limits_a_warning() -> None:
    assert finding_of("engine", engine=None).state == "missing"
    finding = finding_of("engine", engine={**ENGINE, "rootless": True, "limits_memory": False})
    assert finding.state == "warning"
    assert "Docker 28.5 rootless, overlay2 in /var/lib/docker" in finding.detail


def test_missing_interpreters_headers_and_compilers_have_states() -> None:
    assert finding_of("python 3.6", interpreters={"3.6": None}) == Finding(
        "python 3.6", "missing", "none; only virtual environments need it", "`pyenv install 3.6`"
    )
    assert finding_of("python 3.6", headers=frozenset()).state == "warning"
    assert finding_of("compiler", compiler=None).state == "missing"
    assert [remedy("3.7"), remedy("3.8"), remedy("3.11")] == [
        "pyenv install 3.7",
        "uv python install 3.8",
        "uv python install 3.11",
    ]


def test_headers_are_looked_for_in_the_include_folder_of_the_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3.6"
    assert not has_headers(python, "3.6")
    folder = tmp_path / "include" / "python3.6m"
    folder.mkdir(parents=True)
    (folder / "Python.h").touch()
    assert has_headers(python, "3.6")
    assert not has_headers(python, "3.7")


def test_images_are_grouped_by_state_in_findings_and_json() -> None:
    images = {
        "a:1": ImageState("here"),
        "b:1": ImageState("registry"),
        "c:1": ImageState("unavailable", "c:1 cannot be pulled (no such host; try later)", "pull it elsewhere"),
    }
    docker = outlook(images=images)
    assert [finding for finding in judge(FACTS, (docker,)) if finding.name.startswith("image")] == [
        Finding("images", "ok", "on this engine: a:1"),
        Finding("images", "ok", "not on this engine, can be pulled: b:1"),
        Finding("image", "missing", "c:1 cannot be pulled (no such host; try later)", "pull it elsewhere"),
    ]
    assert examined(docker).json()["backends"]["docker"]["images"] == {
        "a:1": "here",
        "b:1": "registry",
        "c:1": "c:1 cannot be pulled (no such host; try later); pull it elsewhere",
    }


def test_environments_without_a_running_cell_are_named() -> None:
    assert finding_of("with docker", (outlook(),)).state == "ok"
    some = finding_of("with venv", (outlook("venv", ("torch-1.0",)),))
    assert some.state == "warning"
    assert some.detail == "1 of 2 environments run here; not torch-1.0"
    assert finding_of("with venv", (outlook("venv", BOTH),)).state == "missing"


def test_disk_finding_names_needed_and_free_bytes() -> None:
    finding = finding_of("disk of docker", (outlook(),))
    assert finding.detail == "1.5 GB needed for 1 new environment, 90.0 GB free in /var/lib/docker"
    assert finding_of("disk of venv", (outlook("venv"),)).detail.endswith("free in /home/a/.cache/matrix-runner")
    assert finding_of("disk of docker", (outlook(no_room="they need 2 TB, 1 GB are free"),)).state == "missing"


def examined(*outlooks: Outlook) -> Examination:
    return Examination(facts=FACTS, findings=judge(FACTS, outlooks), outlooks=outlooks)


@pytest.mark.parametrize(
    ("outlooks", "ready", "verdict"),
    [
        ((outlook(), outlook("venv")), True, "`runner run` takes docker and measures"),
        ((outlook("venv"),), True, "`runner run` takes venv and measures"),
        ((outlook(skips=BOTH), outlook("venv")), True, "use `--backend venv`"),
        ((outlook(no_room="none"), outlook("venv")), True, "use `--backend venv`"),
        ((outlook(skips=BOTH), outlook("venv", BOTH)), False, "nothing runs here"),
        ((outlook("venv", no_room="none"),), False, "nothing runs here"),
    ],
)
def test_machine_is_ready_if_one_backend_is(outlooks: tuple[Outlook, ...], ready: bool, verdict: str) -> None:  # noqa: FBT001
    examination = examined(*outlooks)
    assert examination.ready is ready
    assert verdict in examination.verdict
    assert examination.text().splitlines()[-1] == examination.verdict


def test_the_verdict_says_how_long_it_takes() -> None:
    first = outlook()
    assert examined(first).verdict.startswith("`runner run` takes docker and measures 9 tests in about ")
    quick = replace(first, quick=replace(first.plan, cells=first.plan.cells[:3]))
    assert re.fullmatch(
        r"`runner run` takes docker and measures 3 tests in about \d+ s, the quick ones; "
        r"`runner run --all` takes about [^;]+",
        examined(quick).verdict,
    )


def test_a_terminal_shows_states_in_colours() -> None:
    examination = examined(outlook(skips=BOTH), outlook("venv"))
    styles = {"ok": "\x1b[1;32mok", "warning": "\x1b[1;33mwarning", "missing": "\x1b[1;31mmissing"}
    text = examination.text(100, colour=True)
    for state in {finding.state for finding in examination.findings}:
        assert styles[state] in text
    assert "\x1b[" not in examination.text(100)


def test_table_has_every_finding_with_its_fix() -> None:
    examination = examined(outlook(skips=BOTH), outlook("venv"))
    text = " ".join(examination.text(400).split())
    for finding in examination.findings:
        assert f"{finding.state} {finding.name} {finding.detail}" in text
        assert not finding.fix or f"fix: {finding.fix}" in text


def test_json_has_a_version_and_the_machine_for_a_plan() -> None:
    facts = replace(FACTS, gpus=(H200,))
    document = Examination(facts=facts, findings=judge(facts, ()), outlooks=(outlook("venv", ("torch-1.0",)),)).json()
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        **document,
        "machine": json.loads(json.dumps(document["machine"])),
    }
    assert (document["version"], document["ready"], document["backend"]) == (1, True, "venv")
    machine = document["machine"]
    assert (machine["cpu"], machine["cores"], machine["memory_bytes"]) == ("EPYC", 8, 64_000_000_000)
    assert (machine["os"], machine["glibc"], machine["architecture"]) == (*FACTS.system.values(),)
    assert Gpu(**{**machine["gpus"][0], "capability": tuple(machine["gpus"][0]["capability"])}) == H200
    assert (machine["engine"]["version"], machine["interpreters"]) == ("28.5", {"3.6": "/p/3.6/bin/python3.6"})
    backend = document["backends"]["venv"]
    assert backend["unavailable"] == {"torch-1.0": {"code": "no-interpreter", "reason": "no Python"}}
    assert backend["environments"] == ["torch-2.x"]
    assert {*document["findings"][0]} == {"what", "state", "found", "fix"}


def test_engine_facts_are_read_from_its_info() -> None:
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
    facts = engine(info)
    assert (facts["version"], facts["storage"], facts["cores"], facts["memory_bytes"]) == ("28.5", "overlay2", 3, 7)
    assert (facts["rootless"], facts["limits_memory"], facts["gpus"]) == (True, False, False)
    assert engine({**info, "Runtimes": {"nvidia": {}}})["gpus"]
    assert engine({**info, "DiscoveredDevices": [{"NoiseSource": "cdi", "ID": "nvidia.com/gpu=0"}]})["gpus"]
    assert not engine({**info, "DiscoveredDevices": [{"NoiseSource": "cdi", "ID": "vendor.com/nic=0"}]})["gpus"]
