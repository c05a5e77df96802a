"""The facts of TensorFlow releases that lack a part of the interface: stand-ins with what each really has."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters import tensorflow
from runner.harness.adapters.tensorflow.facts import gpu_facts_v2
from runner.harness.errors import CellFailure

FLAGS = ["-I/venv/tensorflow/include", "-D_GLIBCXX_USE_CXX11_ABI=1"]
Fake = SimpleNamespace


def release(version: str, compiler: str, *, build_info: bool, keras: str | None, gpus: tuple[str, ...] = ()) -> Fake:
    """Return a TensorFlow of 2.x.

    Args:
        version: its version.
        compiler: the macro of its compiler.
        build_info: whether it has ``sysconfig.get_build_info``, and the details of a GPU, since 2.3.
        keras: the version that ``tf.keras`` tells; it does not in 2.13 and 2.14.
        gpus: those that it lists.
    """
    sysconfig, experimental = Fake(get_compile_flags=lambda: FLAGS), Fake()
    if build_info:
        sysconfig.get_build_info = lambda: {"is_cuda_build": True, "cuda_version": "12.2"}
        experimental.get_device_details = lambda gpu: {"device_name": f"NVIDIA {gpu}"}
    return Fake(
        __version__=version,
        __git_version__="v2.2.2-6-g4a0ee6b",
        version=Fake(COMPILER_VERSION=compiler),
        sysconfig=sysconfig,
        test=Fake(is_built_with_cuda=lambda: False),
        keras=Fake(**({"__version__": keras} if keras else {})),
        config=Fake(experimental=experimental, list_physical_devices=lambda _: [*gpus]),
    )


def described(monkeypatch: pytest.MonkeyPatch, fake: Fake, device: str = "cpu", keras: str = "") -> dict[str, Any]:
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    if keras:
        module = ModuleType("keras")
        module.__version__ = keras  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "keras", module)
    return dict(tensorflow.facts(device))


def test_2_2_has_no_build_info(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = release("2.2.3", "7.3.1 20180303", build_info=False, keras="2.3.0-tf")
    read = described(monkeypatch, fake)
    assert (read["version"], read["built_with_cuda"], read["keras"]) == ("2.2.3", False, "2.3.0-tf")
    assert read["source_revision"] == "v2.2.2-6-g4a0ee6b"
    assert (read["compiler"], read["extension_flags"]) == ("GCC 7.3.1 20180303", "-D_GLIBCXX_USE_CXX11_ABI=1")


def test_2_13_has_keras_whose_version_only_its_package_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = release("2.13.1", "Ubuntu Clang 16.0.6 (++20230710042046)", build_info=True, keras=None)
    read = described(monkeypatch, fake, keras="2.13.1")
    assert (read["keras"], read["compiler"]) == ("2.13.1", "Ubuntu Clang 16.0.6")
    assert (read["built_with_cuda"], read["cuda_version"]) == (True, "12.2")


def test_a_keras_that_nobody_imported_is_not_imported_for_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    fake = release("2.13.1", "Clang 16", build_info=True, keras=None)
    assert "keras" not in described(monkeypatch, fake)
    assert "keras" not in sys.modules


def test_a_release_that_tells_nothing_keeps_what_the_harness_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    read = described(monkeypatch, Fake(__version__="2.99.0"))
    assert read["version"] == "2.99.0"
    assert read["inter_op_threads"] == 1
    assert not {"compiler", "built_with_cuda", "keras", "source_revision"} & set(read)


@pytest.mark.parametrize(("build_info", "expected"), [(True, {"gpu": "NVIDIA H200"}), (False, {})])
def test_a_gpu_without_details_has_no_name(
    build_info: bool,  # noqa: FBT001
    expected: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        sys.modules,
        "tensorflow",
        release("2.2", "7.3", build_info=build_info, keras="2.3", gpus=("H200",)),
    )
    assert gpu_facts_v2("TensorFlow") == expected


def test_without_a_gpu_its_facts_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CellFailure, match="sees no GPU"):
        described(monkeypatch, release("2.2", "7.3", build_info=False, keras="2.3"), "cuda")
