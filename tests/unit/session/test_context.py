"""From what was typed to what is planned, without starting anything."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runner.backends import Installed, Resources, choose_backend
from runner.backends.host import HostBackend
from runner.backends.venv import VenvBackend
from runner.core import machine
from runner.core.errors import GpuError, MatrixError, NothingSelectedError, RunnerError, UsageError
from runner.core.paths import cache_folder
from runner.gpu.selection import choose_devices
from runner.matrix import load
from runner.plan.planner import plan
from runner.plan.verdicts import selected_cells
from runner.session.context import check_wsl, setup
from runner.session.options import Options
from runner.session.preparation import NIGHT_QUIET_SECONDS, QUIET_SECONDS
from tests.unit.plan import test_assignment

ROOT = Path(__file__).parents[3]
TYPED = Options(matrix=ROOT / "matrix.yaml", backend="venv", device="cpu", reports=Path("r"))
ENVIRON = {"XDG_CACHE_HOME": "/nowhere/cache"}


def message_of(options: Options, kind: type[RunnerError]) -> str:
    with pytest.raises(kind) as caught:
        setup(options, ENVIRON)
    return str(caught.value)


def test_the_cache_is_where_the_desktop_says() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/matrix-runner")
    assert cache_folder({"HOME": "/h"}) == Path("/h/.cache/matrix-runner")
    assert cache_folder({"XDG_CACHE_HOME": "", "HOME": "/h"}) == Path("/h/.cache/matrix-runner")


def test_nothing_typed_but_where_asks_for_everything_there_is() -> None:
    context = setup(TYPED, ENVIRON)
    matrix = load(ROOT / "matrix.yaml")
    assert context.matrix == matrix
    assert context.request.environments == tuple(matrix.environments)
    assert (context.request.chosen, context.request.workloads, context.request.preset) == (None, (), None)
    assert (context.request.rounds, context.request.seconds) == (None, None)
    assert context.request.threads >= 1
    assert (context.request.device, context.request.backend, context.gpu, context.notes) == ("cpu", "venv", None, ())
    assert (context.settings.matrix, context.settings.reports, context.settings.cache) == (
        ROOT,
        Path("r"),
        Path("/nowhere/cache/matrix-runner"),
    )


def test_what_is_typed_arrives() -> None:
    typed = replace(TYPED, preset="quick", workload=["rnn-step"], rounds=7, seconds=0.5, threads="3", seed=11)
    request = setup(typed, ENVIRON).request
    assert (request.preset, request.workloads) == ("quick", ("rnn-step",))
    assert (request.rounds, request.seconds, request.threads, request.seed) == (7, 0.5, 3, 11)


def test_a_seed_of_zero_is_a_seed_and_none_is_drawn() -> None:
    assert setup(replace(TYPED, seed=0), ENVIRON).request.seed == 0
    assert len({setup(TYPED, ENVIRON).request.seed for _ in range(5)}) == 5


def test_threads_of_the_matrix_count_where_none_are_typed(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "version: 1\nworkloads: {rnn-step: {}}\nmeasure: {threads: 5}\nenvironments:\n"
        '  torch-1.0: {framework: torch, release: "1.0.0", image: x}\n'
    )
    assert setup(replace(TYPED, matrix=path), ENVIRON).request.threads == 5
    assert setup(replace(TYPED, matrix=path, threads="2"), ENVIRON).request.threads == 2


def test_selectors_choose_environments_and_cells() -> None:
    request = setup(replace(TYPED, selectors=["torch-1.0", "tf-1.8/lstm-cell/*"]), ENVIRON).request
    assert request.environments == ("torch-1.0", "tf-1.8")
    assert request.chosen is not None
    assert request.chosen("torch-1.0/nn-lstm/asr-lstm/1x320-ce-short/train/fp32")
    assert request.chosen("tf-1.8/lstm-cell/asr-lstm/1x320-ce-short/train/fp32")
    assert not request.chosen("tf-1.8/basic-lstm-cell/asr-lstm/1x320-ce-short/train/fp32")


def test_environments_come_in_the_order_of_the_selectors() -> None:
    for selectors, expected in (
        (["torch-2.x", "torch-1.0"], ("torch-2.x", "torch-1.0")),
        (["jax", "torch-1.*", "!torch-1.13"], ("jax", "torch-1.0", "torch-1.12")),
        (["torch-1.0@env:A=1", "torch-1.0"], ("torch-1.0@env:A=1", "torch-1.0")),
    ):
        assert setup(replace(TYPED, selectors=selectors), ENVIRON).request.environments == expected


def test_an_environment_is_named_by_its_id_and_by_no_pattern() -> None:
    def named(*selectors: str) -> frozenset[str]:
        return setup(replace(TYPED, selectors=[*selectors] or None), ENVIRON).request.named

    assert named() == named("torch-1.*", "torch>=1.0,<2", "framework:tf", "!torch-1.0") == frozenset()
    assert named("torch-1.0", "tf-*", "jax/jax-scan/*") == {"torch-1.0", "jax"}
    assert named("torch-1.0@env:A=1", "torch-1.12") == {"torch-1.0@env:A=1", "torch-1.12"}


def test_a_run_waits_a_minute_for_a_quiet_machine_and_not_at_all_with_busy_ok() -> None:
    assert setup(TYPED, ENVIRON).settings.quiet_seconds == QUIET_SECONDS == 60
    assert setup(replace(TYPED, busy_ok=True), ENVIRON).settings.quiet_seconds == 0
    assert NIGHT_QUIET_SECONDS > QUIET_SECONDS


def test_an_unknown_preset() -> None:
    assert message_of(replace(TYPED, preset="qick"), UsageError) == (
        "error: there is no preset 'qick'\nhint: did you mean 'quick'?"
    )
    assert message_of(replace(TYPED, preset="nightly"), UsageError) == (
        "error: there is no preset 'nightly'\nhint: there are quick, heritage, smoke, networks, standard, published"
    )


def test_an_unknown_phase() -> None:
    assert message_of(replace(TYPED, phase=["train", "compile-warn"]), UsageError) == (
        "error: there is no phase 'compile-warn'\nhint: did you mean 'compile-warm'?"
    )


def test_an_unknown_workload() -> None:
    assert message_of(replace(TYPED, workload=["rnn-step", "rnn"]), UsageError) == (
        "error: there is no workload 'rnn'\n"
        "hint: there are rnn-step, rnn-sequence, asr-lstm, lm-lstm, deepbench-rnn, deepbench-gemm, deepbench-conv, "
        "deepbench-sparse, deepbench-allreduce, decoder-lm, encoder, residual, operations"
    )


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e308])
def test_seconds_that_are_no_time(seconds: float) -> None:
    text = message_of(replace(TYPED, seconds=seconds), UsageError)
    assert text == f"error: --seconds {seconds} is not a time\nhint: write --seconds 2"


def test_an_unknown_backend() -> None:
    assert message_of(replace(TYPED, backend="podman"), UsageError) == (
        "error: there is no backend 'podman'\nhint: there are auto, docker, venv, host"
    )


def test_an_interpreter_without_the_backend_that_takes_it() -> None:
    for backend in ("auto", "venv", "docker"):
        text = message_of(replace(TYPED, backend=backend, python="/usr/bin/python3"), UsageError)
        assert text == "error: --python is for --backend host\nhint: add --backend host"
        text = message_of(replace(TYPED, backend=backend, framework="jax"), UsageError)
        assert text == "error: --framework is for --backend host\nhint: add --backend host"


def test_an_interpreter_that_is_not_there() -> None:
    text = message_of(replace(TYPED, backend="host", python="/no/such/python"), UsageError)
    assert text == "error: there is no interpreter '/no/such/python'\nhint: name an interpreter with --python PATH"


def test_an_interpreter_is_found_by_a_path_from_here_wherever_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert HostBackend("./python", tmp_path).python == str(tmp_path / "python")


@pytest.mark.parametrize("device", ["cuda:97", "GPU-00000000-dead-beef", "gpu", "cudahost", "cpu:0", ""])
def test_an_unknown_device(device: str) -> None:
    with pytest.raises(GpuError) as caught:
        choose_devices(device)
    assert str(caught.value).startswith(f"error: there is no device {device!r}\nhint: this machine shows ")
    assert str(caught.value).endswith("; or --device cpu")


def test_the_cpu_is_always_there() -> None:
    assert choose_devices("cpu") == ("cpu", ())


def test_wsl_is_recognised_by_its_kernel_and_its_device_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "WSL_GPU", tmp_path / "dxg")
    assert machine.is_wsl("5.15.90.1-microsoft-standard-WSL2")
    assert not machine.is_wsl("6.1.0-13-amd64")
    (tmp_path / "dxg").touch()
    assert machine.is_wsl("6.1.0-13-amd64")


def test_a_container_of_wsl_measures_on_the_only_gpu() -> None:
    check_wsl((test_assignment.FIRST,))
    with pytest.raises(GpuError, match=r"gets all GPUs of the machine, and this has 2 \(H200, H200\)") as caught:
        check_wsl((test_assignment.FIRST, test_assignment.SECOND))
    assert "--backend venv" in str(caught.value)


def test_an_unknown_environment_and_an_empty_selection() -> None:
    assert "'torch-9' names no environment" in message_of(replace(TYPED, selectors=["torch-9"]), NothingSelectedError)
    assert "no environment remains" in message_of(
        replace(TYPED, selectors=["torch-1.0", "!torch-1.0"]), NothingSelectedError
    )


def test_a_matrix_without_environments(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("version: 1\nworkloads: {rnn-step: {}}\nenvironments: {}\n")
    assert message_of(replace(TYPED, matrix=path), NothingSelectedError) == "error: the matrix names no environment"


def test_a_matrix_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert message_of(replace(TYPED, matrix=path), MatrixError).startswith(f"error: there is no {path}")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"preset": "x"}, 2),
        ({"workload": ["x"]}, 2),
        ({"backend": "x"}, 2),
        ({"matrix": Path("/none.yaml")}, 2),
        ({"selectors": ["x"]}, 3),
        ({"device": "cuda:97"}, 5),
    ],
)
def test_each_mistake_has_its_exit_code(changes: dict[str, object], code: int) -> None:
    with pytest.raises(RunnerError) as caught:
        setup(replace(TYPED, **changes), ENVIRON)  # type: ignore[arg-type]  # one field each
    assert caught.value.exit_code == code


def test_the_host_measures_the_framework_that_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(backend: HostBackend) -> Installed:
        framework = backend.framework or "torch"
        return Installed(python=backend.python, framework=framework, release="1.0", python_version="3.11")

    monkeypatch.setattr(HostBackend, "installed", installed)
    typed = replace(TYPED, backend="host", python=sys.executable, framework="jax", name="here")
    context = setup(typed, {"XDG_CACHE_HOME": str(tmp_path)})
    assert context.matrix.environments["here"].framework == "jax"
    assert context.settings.as_is["here"].framework == "jax"
    assert "--framework" in context.origin.command
    with pytest.raises(UsageError, match="there is no framework 'tf'"):
        setup(replace(typed, framework="tf"), ENVIRON)


def test_backends_by_name(tmp_path: Path) -> None:
    backend, note = choose_backend("venv", Resources(dockerfiles=ROOT / "docker", cache=tmp_path))
    assert isinstance(backend, VenvBackend)
    assert note is None
    backend, note = choose_backend("host", Resources(dockerfiles=ROOT, cache=tmp_path, python=sys.executable))
    assert isinstance(backend, HostBackend)
    assert (backend.name, note) == ("host", None)


def test_variables_and_variants_that_are_typed_arrive() -> None:
    typed = replace(TYPED, selectors=["torch-2.x", "torch-2.x@env:A=1"], env=["B=2"], threads="2,4")
    context = setup(typed, ENVIRON)
    names = ("torch-2.x", "torch-2.x@threads:4", "torch-2.x@env:A=1", "torch-2.x@env:A=1@threads:4")
    assert context.request.environments == names
    assert context.request.threads == 2
    launches = [context.matrix.launch_of(name) for name in names]
    assert [launch.threads for launch in launches] == [0, 4, 0, 4]
    assert [launch.variables for launch in launches] == [{"B": "2"}] * 2 + [{"B": "2", "A": "1"}] * 2
    assert Options.of_argv(context.origin.command) == typed


def test_a_variant_has_the_cells_of_its_environment_in_a_preset() -> None:
    context = setup(replace(TYPED, selectors=["torch-2.x", "torch-2.x@env:A=1"], preset="quick"), ENVIRON)
    cells = [cell.id.partition("/") for cell in selected_cells(context.matrix, context.request)]
    by_environment = {name: [rest for each, _, rest in cells if each == name] for name, _, _ in cells}
    assert by_environment["torch-2.x"] == by_environment["torch-2.x@env:A=1"] != []


def test_a_wrong_variable_is_a_usage_error() -> None:
    text = message_of(replace(TYPED, env=["OMP_NUM_THREADS"]), UsageError)
    assert text == (
        "error: 'OMP_NUM_THREADS' is no variable with its value\n"
        "hint: write NAME=VALUE, such as OMP_WAIT_POLICY=passive"
    )


def test_a_rule_of_the_matrix_excludes_the_variants_of_an_environment(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "version: 1\nworkloads: {rnn-step: {}}\nenvironments:\n"
        '  torch-1.0: {framework: torch, release: "1.0.0", image: x}\n'
        "exclude: [{select: torch-1.0/nn-lstm/*, reason: broken}]\n"
    )
    context = setup(replace(TYPED, matrix=path, selectors=["torch-1.0", "torch-1.0@env:A=1"]), ENVIRON)
    cells = plan(context.matrix, context.request, {}).cells
    excluded = {each.cell.environment for each in cells if each.skip and each.skip.code == "excluded"}
    assert excluded == {"torch-1.0", "torch-1.0@env:A=1"}
