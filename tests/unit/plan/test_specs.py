"""What a backend is asked to make, and the sentence that says what it will cost."""

from pathlib import Path

import pytest

from runner.core.errors import RunnerError
from runner.core.model import Skip, Spec, Survey
from runner.matrix import Matrix, parse
from runner.plan.specs import SPARE_DISK_BYTES, announce, specs, with_interpreters

TEXT = b"""\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-0.4: {framework: torch, release: "0.4.0", image: "pytorch/pytorch:0.4", cuda: "9.0"}
  torch-1.0:
    framework: torch
    release: "1.0.0"
    python: "3.6"
    lock: locks/torch.txt
    download_bytes: 607_000_000
    disk_bytes: 1_170_000_000
  tf-1.8:
    framework: tensorflow
    release: "1.8.0"
    python: "3.6"
    variants:
      cpu: {lock: locks/tf.txt, download_bytes: 74_000_000, disk_bytes: 350_000_000}
      cuda: {image: "tensorflow/tensorflow:1.8.0-gpu-py3"}
  only-cuda: {framework: torch, release: "2", python: "3.11", variants: {cuda: {requirements: [t], base: b}}}
  only-cpu: {framework: torch, release: "2", python: "3.11", variants: {cpu: {requirements: [torch]}}}
  tf-0.8: {framework: tensorflow, release: "0.8.0", python: "2.7", image: "tensorflow/tensorflow:0.8.0"}
"""
ROOM = 100 * SPARE_DISK_BYTES


def matrix() -> Matrix:
    return parse(TEXT, "m.yaml")


def spec(name: str, download: int = 0, disk: int = 0) -> Spec:
    return Spec(environment=name, framework="torch", release="1.0.0", download=download, disk=disk)


def test_one_build_serves_both_devices(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "torch.txt").write_text("torch==1.0.0")
    cpu, skips = specs(matrix(), ["torch-1.0"], "cpu", tmp_path)
    assert (cpu, skips) == (specs(matrix(), ["torch-1.0"], "cuda", tmp_path)[0], {})
    (built,) = cpu
    assert (built.environment, built.framework, built.release) == ("torch-1.0", "torch", "1.0.0")
    assert (built.python, built.image, built.base) == ("3.6", None, "python:3.6-slim")
    assert str(built.lock) == str(tmp_path / "locks" / "torch.txt")
    assert (built.download, built.disk) == (607_000_000, 1_170_000_000)


def test_a_lock_that_was_not_made_yet_is_none(tmp_path: Path) -> None:
    (built,), _ = specs(matrix(), ["torch-1.0"], "cpu", tmp_path)
    assert built.lock is None


EXTENDED = b"""\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-2:
    framework: torch
    release: "2.0.0"
    python: "3.11"
    variants:
      cpu: {lock: cpu.txt, requirements: [torch==2.0.0], base: "python:3.11"}
      cuda-11.7: {lock: cuda-11.7.txt, requirements: [torch==2.0.0], cuda: "11.7"}
      cuda-11.8: {lock: cuda-11.8.txt, requirements: [torch==2.0.0], cuda: "11.8"}
  nets: {extends: torch-2, add: ["Timm>=1", tqdm]}
  quick: {extends: torch-2, env: {A: "1"}}
"""


def test_an_environment_that_adds_packages_is_made_from_the_same_build_of_the_other(tmp_path: Path) -> None:
    for name in ("cpu", "cuda-11.7", "cuda-11.8"):
        (tmp_path / f"{name}.txt").write_text("torch==2.0.0")
    extending = parse(EXTENDED, "m.yaml")
    (cpu,), _ = specs(extending, ["nets"], "cpu", tmp_path)
    assert (cpu.extends, cpu.added) == (specs(extending, ["torch-2"], "cpu", tmp_path)[0][0], ("timm", "tqdm"))
    (cuda,), _ = specs(extending, ["nets"], "cuda", tmp_path)
    assert cuda.extends is not None
    assert cuda.extends.lock == tmp_path / "cuda-11.8.txt"
    assert specs(extending, ["quick"], "cpu", tmp_path)[0][0].extends is None
    (tmp_path / "cpu.txt").unlink()
    assert specs(extending, ["nets"], "cpu", tmp_path)[0][0].extends is None


def test_a_variant_is_made_for_its_device(tmp_path: Path) -> None:
    (cpu,), _ = specs(matrix(), ["tf-1.8"], "cpu", tmp_path)
    (cuda,), _ = specs(matrix(), ["tf-1.8"], "cuda", tmp_path)
    assert (cpu.python, cpu.image, cpu.base, cpu.disk) == ("3.6", None, "python:3.6-slim", 350_000_000)
    assert (cuda.python, cuda.image, cuda.base) == (None, "tensorflow/tensorflow:1.8.0-gpu-py3", None)
    assert (cuda.download, cuda.disk) == (0, 0)


def test_an_image_brings_its_own_python(tmp_path: Path) -> None:
    (built,), _ = specs(matrix(), ["torch-0.4"], "cpu", tmp_path)
    assert (built.image, built.python, built.base, built.lock) == ("pytorch/pytorch:0.4", None, None, None)


def test_a_base_of_its_own_is_kept(tmp_path: Path) -> None:
    (built,), _ = specs(matrix(), ["only-cuda"], "cuda", tmp_path)
    assert built.base == "b"


def test_what_has_no_build_for_the_device_is_a_skip_with_a_reason(tmp_path: Path) -> None:
    specs_of_cpu, skips = specs(matrix(), ["only-cuda", "torch-1.0", "only-cpu"], "cpu", tmp_path)
    assert [spec_of_cpu.environment for spec_of_cpu in specs_of_cpu] == ["torch-1.0", "only-cpu"]
    assert skips == {"only-cuda": Skip("needs-gpu", "matrix.yaml has no variant for cpu")}
    _, skips = specs(matrix(), ["only-cuda", "only-cpu"], "cuda", tmp_path)
    assert skips == {"only-cpu": Skip("framework-lacks", "matrix.yaml has no variant for cuda")}


def test_an_image_without_a_python_for_the_harness_is_not_pulled(tmp_path: Path) -> None:
    reason = "it has Python 2.7, and the harness needs Python 3.5 or newer"
    assert specs(matrix(), ["tf-0.8"], "cpu", tmp_path) == ((), {"tf-0.8": Skip("framework-lacks", reason)})


def test_nothing_to_make_is_nothing_to_say() -> None:
    assert announce([], Survey()) is None
    assert announce([spec("a")], Survey(cached=frozenset({"a"}), free=1)) is None
    assert announce([spec("a")], Survey(skips={"a": Skip("no-interpreter", "none")}, free=1)) is None


def test_the_cost_is_said_in_a_sentence() -> None:
    sentence = announce([spec("a", 592_000_000, 10**9), spec("b", 10**9, 2 * 10**9)], Survey(free=80 * 10**9))
    assert sentence == "building a, b: downloads about 1.6 GB, needs about 3.0 GB of disk (80.0 GB are free)"


def test_what_is_here_or_cannot_be_had_costs_nothing() -> None:
    survey = Survey(cached=frozenset({"a"}), skips={"b": Skip("no-engine", "none")}, free=ROOM)
    sentence = announce([spec("a", 5, ROOM), spec("b", 5, ROOM), spec("c", 10**6, 2 * 10**6)], survey)
    assert sentence == "building c: downloads about 1 MB, needs about 2 MB of disk (107.4 GB are free)"


def test_what_the_team_s_registry_has_is_pulled() -> None:
    specs = [spec("a", 10**6, 10**6), spec("b", 10**6, 10**6), spec("c", 10**6, 10**6)]
    for pulled, verbs in (({"b"}, "pulling b and building a, c"), ({"a", "b", "c"}, "pulling a, b, c")):
        sentence = announce(specs, Survey(pulled=frozenset(pulled)))
        assert sentence == f"{verbs}: downloads about 3 MB, needs about 3 MB of disk"


def test_what_is_not_known_is_said() -> None:
    sentence = announce([spec("a", 10**9, 10**9), spec("b"), spec("c")], Survey())
    size = "downloads about 1.0 GB, needs about 1.0 GB of disk"
    rest = "and what b, c may download, which neither lock nor index says"
    assert sentence == f"building a, b, c: {size}, {rest}"
    assert announce([spec("b"), spec("c")], Survey(free=50 * 10**9)) == "building b, c (50.0 GB are free)"


def test_too_little_room_is_an_error_before_anything_is_fetched() -> None:
    needed = 2 * 10**9
    assert announce([spec("a", 1, needed)], Survey(free=needed + SPARE_DISK_BYTES)) is not None
    with pytest.raises(RunnerError) as caught:
        announce([spec("a", 1, 10**9), spec("b", 1, 10**9)], Survey(free=needed + SPARE_DISK_BYTES - 1))
    assert str(caught.value) == (
        "error: not enough disk space for a, b: they need 2.0 GB, 3.1 GB are free\n"
        "hint: select fewer environments, or free disk space; 1.1 GB have to stay free"
    )
    assert caught.value.exit_code == 1


def test_what_exists_is_started_by_its_interpreter_and_others_by_theirs() -> None:
    build = [Spec(environment=name, framework="numpy", release="2") for name in ("a", "b")]
    assert [each.interpreter for each in with_interpreters(build, {"a": "/opt/a/bin/python"})] == [
        "/opt/a/bin/python",
        "",
    ]
