"""Planning for a machine that is described: by its description alone, and what the table of the documentation says."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.core import machine
from runner.core.errors import EngineError, GpuError, UsageError
from runner.core.model import Gpu, Plan
from runner.matrix import load
from runner.plan.machine_file import MachineDescription, read_machine_file
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from tests.support.needs import slow

ROOT = Path(__file__).parents[3]
EXAMPLES = tuple(sorted((ROOT / "docs" / "machines").glob("*.json")))
SOME, OTHERS = EXAMPLES[::3], tuple(path for index, path in enumerate(EXAMPLES) if index % 3)
"""Planning for each takes seconds: the others are planned with --need slow."""
TYPED = Options(matrix=ROOT / "matrix.yaml", workload=["rnn-step"], precision=["fp32"], all=True, seed=0)
H200 = Gpu(uuid="GPU-1", name="NVIDIA H200", capability=(9, 0), driver="595.71.05", memory=150_000_000_000)
OTHER = MachineDescription(
    file=Path("other.json"),
    cpu="Xeon",
    cores=37,
    memory=64_000_000_000,
    gpus=(H200, replace(H200, uuid="GPU-2", name="second", memory=1 << 28)),
    engine=True,
    passes_gpus=True,
    interpreters={},
    glibc=None,
)

X86_64_ALONE = (
    "its build for cpu exists only for x86_64, and the machine is aarch64: add `aarch64:` to it in matrix.yaml"
)


@pytest.fixture(autouse=True)
def _not_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whoever looks at this machine."""

    def refuse(*_args: object, **_options: object) -> NoReturn:
        pytest.fail("a plan for another machine looked at this one")

    for name in ("cores", "memory", "memory_limit", "available_memory", "glibc", "cpu_name", "describe", "cpu_quota"):
        monkeypatch.setattr(machine, name, refuse)
    for name in ("runner.gpu.detect.gpus", "runner.gpu.detect.present", "runner.backends.docker.backend.no_engine"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.setattr("runner.backends.interpreters.find", refuse)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def words(plan: Plan) -> Mapping[str, str]:
    """Return environment -> ``run`` where something of it runs, else the codes."""
    codes: dict[str, set[str]] = {}
    for entry in plan.cells:
        codes.setdefault(entry.cell.environment, set()).add(entry.skip.code if entry.skip else "run")
    return {name: "run" if "run" in these else ", ".join(sorted(these)) for name, these in codes.items()}


def test_cores_memory_device_and_backend_are_those_of_the_description() -> None:
    plan = planned(TYPED, OTHER)
    assert (plan.device, plan.backend, plan.measurement.threads) == ("cuda", "docker", 37)
    assert planned(replace(TYPED, threads="5"), OTHER).measurement.threads == 5
    assert planned(replace(TYPED, device="cpu"), OTHER).device == "cpu"
    assert planned(TYPED, replace(OTHER, gpus=())).device == "cpu"
    assert planned(TYPED, replace(OTHER, engine=False)).backend == "venv"
    heavy = replace(TYPED, selectors=["torch-2.x/nn-lstm/rnn-step/lstm-b128-h1024"])
    assert planned(heavy, OTHER).cells[0].skip is None
    for device in ("GPU-2", "cuda:1"):
        skip = planned(replace(heavy, device=device), OTHER).cells[0].skip
        assert skip is not None
        assert skip.code == "no-memory"


def test_images_can_be_pulled_and_what_has_no_lock_cannot_be_built() -> None:
    v100 = replace(H200, name="V100", capability=(7, 0), driver="580.95.05")
    words_by_environment = words(planned(TYPED, replace(OTHER, gpus=(v100,))))
    assert {name: words_by_environment[name] for name in ("torch-0.3", "torch-0.4", "tf-1.8", "theano-cudnn")} == {
        "torch-0.3": "framework-lacks, image-unavailable",
        "torch-0.4": "run",
        "tf-1.8": "run",
        "theano-cudnn": "run",
    }


def test_without_an_engine_the_interpreters_decide() -> None:
    bare = replace(OTHER, engine=False, passes_gpus=False, interpreters={"3.11": True, "3.10": False})
    words_by_environment = words(planned(replace(TYPED, device="cpu"), bare))
    assert words_by_environment["torch-2.x"] == words_by_environment["tf-2.x"] == "run"
    assert words_by_environment["torch-1.12"] == "framework-lacks, needs-gpu, no-interpreter"
    assert "no-engine" in words_by_environment["torch-0.4"]
    reasons = {
        entry.cell.environment: entry.skip.reason
        for entry in planned(replace(TYPED, device="cpu"), bare).cells
        if entry.skip and entry.skip.code == "no-interpreter"
    }
    assert reasons["torch-1.12"] == "there is no Python 3.10 on that machine"
    assert reasons["torch-1.0"] == "other.json does not say whether there is Python 3.6"


def test_the_c_library_of_a_venv_is_that_of_the_description() -> None:
    bare = replace(OTHER, engine=False, interpreters={"3.11": True})
    assert words(planned(TYPED, bare))["torch-2.x"] == "run"
    old = words(planned(TYPED, replace(bare, glibc="2.27")))
    assert old["torch-2.x"] == "image-unavailable"
    assert words(planned(TYPED, replace(OTHER, glibc="2.27")))["torch-2.x"] == "run"  # in an image


def test_what_cannot_be_asked_of_another_machine() -> None:
    bare = replace(OTHER, engine=False)
    for options, described, kind in (
        (replace(TYPED, backend="host"), OTHER, UsageError),
        (replace(TYPED, python="python3"), OTHER, UsageError),
        (replace(TYPED, selectors=["python:/opt/a/bin/python"]), OTHER, UsageError),
        (replace(TYPED, selectors=["image:team/net:1"]), OTHER, UsageError),
        (replace(TYPED, backend="podman"), OTHER, UsageError),
        (replace(TYPED, backend="docker"), bare, EngineError),
        (replace(TYPED, device="cuda:2"), OTHER, GpuError),
        (replace(TYPED, device="cuda"), replace(OTHER, gpus=()), GpuError),
    ):
        with pytest.raises(kind) as caught:
            planned(options, described)
        assert "hint: " in str(caught.value)
    with pytest.raises(GpuError, match=r"other\.json shows cuda:0 \(NVIDIA H200\), cuda:1 \(second\)"):
        planned(replace(TYPED, device="cuda:2"), OTHER)


def test_what_it_plans_for_is_said_first() -> None:
    lines: list[str] = []
    planned(TYPED, OTHER, lines.append)
    planned(TYPED, replace(OTHER, passes_gpus=False), lines.append)
    planned(TYPED, replace(OTHER, gpus=()), lines.append)
    first = "planning for NVIDIA H200 with driver 595.71.05, as other.json describes it"
    clocks = (
        "a run there locks the clocks of NVIDIA H200 (SM base, memory max) until it ends where nobody else computes"
    )
    clocks += " on it; `--no-pin` measures without"
    assert [*lines[:3], *lines[4:]] == [first, clocks, first, clocks, "planning for Xeon, as other.json describes it"]
    assert "NVIDIA Container Toolkit" in lines[3]


def test_what_a_run_there_does_to_clocks_follows_the_option() -> None:
    forced: list[str] = []
    planned(replace(TYPED, pin=True), OTHER, forced.append)
    assert forced[1].endswith("(SM base, memory max) until it ends; `--no-pin` measures without")
    left: list[str] = []
    planned(replace(TYPED, pin=False), OTHER, left.append)
    assert len(left) == 1


# What runs natively on the examples, is left to JIT, or is refused for the GPU or its driver; worked out by hand from
# what the wheels hold and from the drivers that their CUDA needs. Cells of cuDNN aside.
RUN, JIT, ARCH, DRIVER = "run", "by JIT", "arch", "driver"
MEANT = "run by JIT"  # by PTX that was made for just this GPU
TORCH = ("torch-1.0", "torch-1.13", "torch-2.1", "torch-2.6", "torch-2.8", "torch-2.10", "torch-2.11", "torch-2.x")
COLUMNS = (
    *TORCH,
    "tf-1.8",
    "tf-1.15",
    "tf-2.15",
    "tf-2.16",
    "tf-2.17",
    "tf-2.18",
    "tf-2.x",
    "keras-3",
    "jax-0.4",
    "jax",
    "theano-cudnn",
)
OLD_DRIVER = (RUN, *[DRIVER] * 3, ARCH, ARCH, ARCH, ARCH, RUN, *[DRIVER] * 9, RUN)
ADA = (JIT, *[RUN] * 7, JIT, JIT, JIT, *[RUN] * 7, ARCH)
HOPPER = (JIT, ARCH, *[RUN] * 6, JIT, JIT, JIT, *[MEANT] * 5, RUN, RUN, ARCH)
BLACKWELL = (JIT, ARCH, ARCH, ARCH, *[RUN] * 4, JIT, JIT, JIT, ARCH, *[JIT] * 5, RUN, ARCH)
WORDS_BY_MACHINE = {
    "gtx-1080-384": OLD_DRIVER,
    "gtx-1080-580": (*[RUN] * 5, ARCH, ARCH, *[RUN] * 12),  # torch-2.8 and torch-2.x with CUDA 12.6
    "v100-sxm2-384": (*OLD_DRIVER[:4], DRIVER, DRIVER, *OLD_DRIVER[6:]),
    "v100-sxm2-580": (*[RUN] * 6, ARCH, *[RUN] * 12),  # torch-2.x with CUDA 12.6
    "a100-sxm4-450": (JIT, *[DRIVER] * 7, JIT, JIT, *[DRIVER] * 8, ARCH),
    "a100-sxm4-535": (JIT, *[RUN] * 5, DRIVER, RUN, JIT, JIT, MEANT, *[RUN] * 7, ARCH),
    "a100-sxm4-595": (JIT, *[RUN] * 7, JIT, JIT, MEANT, *[RUN] * 7, ARCH),
    "l4-580": ADA,
    "rtx-4090-580": ADA,
    "h200-550": (*HOPPER[:6], DRIVER, *HOPPER[7:13], DRIVER, DRIVER, DRIVER, *HOPPER[16:]),
    "h200-580": HOPPER,
    "h200-595": HOPPER,
    # The PTX of CUDA 12.9, in jax-0.4, needs driver 575.
    "rtx-5090-570": (*BLACKWELL[:6], DRIVER, DRIVER, *BLACKWELL[8:16], DRIVER, *BLACKWELL[17:]),
    "rtx-5090-595": BLACKWELL,
}
TABLE = {name: dict(zip(COLUMNS, words_of, strict=True)) for name, words_of in WORDS_BY_MACHINE.items()}


@pytest.mark.parametrize("path", [*SOME, *slow(*OTHERS)], ids=lambda path: path.stem)
def test_the_examples_are_planned_as_worked_out_and_the_page_says_so(path: Path) -> None:
    described = read_machine_file(path)
    strict, lenient = (planned(replace(TYPED, allow_jit=allowed), described) for allowed in (False, True))
    jit, meant = ({entry.cell.environment for entry in plan.cells if entry.jit} for plan in (lenient, strict))
    assert meant == {name for name, word in TABLE[path.stem].items() if word == MEANT}
    gpu = described.gpus[0]
    page = (ROOT / "docs" / "gpus.md").read_text("utf-8").splitlines()
    head = next(line for line in page if line.startswith("| environment | NVIDIA GeForce GTX 1080, "))
    column = [cell.strip() for cell in head.split("|")].index(f"{gpu.name}, {gpu.driver}")
    for name, word in TABLE[path.stem].items():
        without, allowed = words(strict)[name], words(lenient)[name]
        if word == JIT:
            assert (without == RUN, allowed, name in jit) == (False, RUN, True), name
        elif word == MEANT:
            assert (without, allowed, name in jit) == (RUN, RUN, True), name
        else:
            assert word in without.split(", "), name
            assert (allowed == RUN) == (word == RUN), name
            assert name not in jit
        line = next(line for line in page if line.startswith(f"| {name} | "))
        shown = line.split("|")[column].strip()
        assert shown.removesuffix(", not by cuDNN") == word.replace("run", "runs"), (name, shown)


def test_every_example_is_worked_out() -> None:
    assert {path.stem for path in EXAMPLES} == set(TABLE)


# At least so many releases run wherever their builds exist; where fewer do, these are the builds that there are.
ENOUGH = {"torch": 4, "tensorflow": 3, "jax": 2}
FEWER = {
    ("a100-sxm4-450", "torch"): 0,  # driver 450.51: PyTorch 1.7.1 with CUDA 11.0 alone
    ("a100-sxm4-450", "tensorflow"): 0,
    ("a100-sxm4-450", "jax"): 0,
    ("gtx-1080-384", "torch"): 3,
    ("gtx-1080-384", "tensorflow"): 1,
    ("gtx-1080-384", "jax"): 0,
    ("v100-sxm2-384", "torch"): 2,
    ("v100-sxm2-384", "tensorflow"): 1,
    ("v100-sxm2-384", "jax"): 0,
    ("h200-550", "tensorflow"): 2,  # the PTX of 2.18 and later needs driver 555
    ("rtx-5090-570", "torch"): 2,  # CUDA 12.8 began with 2.7, CUDA 13 needs driver 580
    ("rtx-5090-570", "tensorflow"): 0,  # no release has code for it
    ("rtx-5090-595", "tensorflow"): 0,
    ("rtx-5090-570", "jax"): 1,
    ("rtx-5090-595", "jax"): 1,
}


@pytest.mark.parametrize("path", [*SOME, *slow(*OTHERS)], ids=lambda path: path.stem)
def test_enough_releases_run_wherever_their_builds_exist(path: Path) -> None:
    plan = planned(replace(TYPED, workload=None, precision=None, preset="smoke"), read_machine_file(path))
    running = {entry.cell.environment for entry in plan.cells if entry.skip is None}
    counts = {key: sum(plan.frameworks[name] == key for name in running) for key in ENOUGH}
    for framework, count in counts.items():
        expected = FEWER.get((path.stem, framework))
        assert count == expected if expected is not None else count >= ENOUGH[framework], (framework, sorted(running))
    both = {"torch-2.1", "torch-2.x"} <= running
    without = {"gtx-1080-384", "v100-sxm2-384", "a100-sxm4-450", "rtx-5090-570", "rtx-5090-595"}
    assert both == (path.stem not in without)


def test_every_refusal_of_the_page_has_a_source_that_is_listed() -> None:
    page = (ROOT / "docs" / "gpus.md").read_text("utf-8")
    why, _, sources = page.partition("## Why not")[2].partition("## Sources")
    listed = {line.partition(".")[0] for line in sources.strip().splitlines()}
    assert listed == {str(number) for number in range(1, len(listed) + 1)}
    rows = [line for line in why.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    cited = [row.rstrip(" |").rpartition("| ")[2] for row in rows]
    numbers = {citation for citation in cited if citation.isdigit()}
    assert numbers == listed
    assert len([citation for citation in cited if not citation.isdigit()]) == 7 + 1 + 1  # the heads of the tables


def test_the_command_line() -> None:
    path = str(ROOT / "docs" / "machines" / "h200-550.json")
    typed = ["plan", "torch-1.0", "torch-2.11", "--matrix", str(ROOT / "matrix.yaml"), "--machine", path]
    words_typed = [*typed, "--format", "json", "--workload", "rnn-step", "--precision", "fp32"]
    done = CliRunner().invoke(cli.app, words_typed, standalone_mode=False)
    assert done.return_value == 0
    document = json.loads(done.stdout)
    assert (document["device"], document["backend"], document["threads"]) == ("cuda", "docker", 112)
    assert {cell["code"] for cell in document["cells"] if cell["implementation"] == "nn-lstm"} == {"arch", "driver"}
    assert "planning for NVIDIA H200 with driver 550.54.15" in done.stderr
    done = CliRunner().invoke(
        cli.app, ["plan", "tf-2.x", *typed[3:], "--workload", "rnn-step", "--why"], standalone_mode=False
    )
    assert "tensorflow[and-cuda]==2.16.2" in done.stdout  # no terminal takes it for markup
    with pytest.raises(UsageError):
        CliRunner().invoke(cli.app, [*typed[:-1], "none.json"], standalone_mode=False, catch_exceptions=False)


def test_every_environment_of_the_matrix_is_on_the_page() -> None:
    page = (ROOT / "docs" / "gpus.md").read_text("utf-8").partition("## Why not")[0]
    for name in load(ROOT / "matrix.yaml").environments:
        assert f"\n| {name} | " in page


def test_a_machine_with_aarch64_runs_the_builds_for_it() -> None:
    arm = replace(OTHER, gpus=(), architecture="aarch64")
    notes: list[str] = []
    plan = planned(TYPED, arm, notes.append)
    runs = {name for name, verdict in words(plan).items() if verdict == "run"}
    assert runs == {"tf-2.18", "tf-2.x", "keras-3.8", "keras-3", "jax-0.4", "jax"}
    reasons = {(each.cell.environment, each.skip.reason) for each in plan.cells if each.skip is not None}
    assert ("torch-0.4", X86_64_ALONE) in reasons
    no_lock = "no lock yet: it is made where the environment is named: `runner plan torch-1.0`"
    assert ("torch-1.0", no_lock) in reasons
    assert "planning for Xeon (aarch64), as other.json describes it" in notes
