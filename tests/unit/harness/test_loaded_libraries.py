"""What libraries say about themselves: those of this process, and stand-ins with the names of every build."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.harness import loaded_libraries
from runner.harness.loaded_libraries import facts, loaded, of_openblas


class Function:
    """A function of a library, which ctypes gives a result type."""

    def __init__(self, result: object) -> None:
        """Return the result at each call."""
        self.result, self.restype = result, None

    def __call__(self, *_: object) -> object:
        """Return the result."""
        return self.result


class Library:
    """A library with some functions and no others."""

    def __init__(self, **functions: object) -> None:
        """Give each function its result."""
        vars(self).update({name: Function(result) for name, result in functions.items()})


def openblas(prefix: str, suffix: str, config: bytes) -> Library:
    results = {"get_config": config, "get_corename": b"SkylakeX", "get_num_threads": 2}
    return Library(**{f"{prefix}openblas_{name}{suffix}": result for name, result in results.items()})


@pytest.mark.parametrize(
    ("prefix", "suffix", "config", "file", "version", "integers"),
    [
        ("", "", b"OpenBLAS 0.3.17 NO_LAPACKE DYNAMIC_ARCH SkylakeX", "libopenblasp.so", "0.3.17", "32 bits"),
        ("", "64_", b"OpenBLAS 0.3.18 USE64BITINT DYNAMIC_ARCH", "libopenblas64_p.so", "0.3.18", "64 bits"),
        ("scipy_", "64_", b"OpenBLAS 0.3.31.188.0  USE64BITINT", "libscipy_openblas64_.so", "0.3.31.188.0", "64 bits"),
        ("scipy_", "", b"OpenBLAS 0.3.28 DYNAMIC_ARCH", "libscipy_openblas.so", "0.3.28", "32 bits"),
        ("", "", b"NO_LAPACKE DYNAMIC_ARCH", "libopenblasp-r0-8dca6697.3.0.dev.so", "0.3.0", "32 bits"),
        ("", "", b"NO_LAPACKE DYNAMIC_ARCH", "libopenblasp-r0.2.20.so", "0.2.20", "32 bits"),
    ],
)
def test_openblas_answers_under_each_of_its_names(
    prefix: str, suffix: str, config: bytes, file: str, version: str, integers: str
) -> None:
    described = of_openblas(f"/site-packages/numpy.libs/{file}", openblas(prefix, suffix, config))
    assert described == {
        "openblas": version,
        "openblas_integers": integers,
        "openblas_kernels": "SkylakeX",
        "openblas_threads": 2,
    }


def test_openblas_whose_functions_have_other_names_is_not_described() -> None:
    assert of_openblas("libopenblas.so", Library(openblas_get_config_of_ours=b"")) == {}


def test_two_copies_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = {
        "/numpy.libs/libopenblas64_p-r0-15028c96.3.21.so": openblas("", "64_", b"OpenBLAS 0.3.21 USE64BITINT"),
        "/scipy.libs/libscipy_openblas-68440149.so": openblas("scipy_", "", b"OpenBLAS 0.3.28 DYNAMIC_ARCH"),
    }
    monkeypatch.setattr(loaded_libraries, "loaded", lambda: sorted(libraries))
    monkeypatch.setattr(loaded_libraries, "opened", libraries.__getitem__)
    described = facts()
    assert (described["openblas"], described["openblas_integers"]) == ("0.3.21 and 0.3.28", "32 bits and 64 bits")
    assert (described["openblas_kernels"], described["openblas_threads"]) == ("SkylakeX", "2")


def test_other_libraries_are_named_by_their_functions_or_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def mkl(text: Any, length: int) -> None:
        text.value = b"Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 2024"[: length - 1]

    libraries = {
        "/lib/libmkl_rt.so.2": type("Mkl", (), {"MKL_Get_Version_String": staticmethod(mkl)})(),
        "/lib/libblis.so.4": Library(bli_info_get_version_str=b"0.9.0", bli_arch_query_id=3, bli_arch_string=b"zen2"),
        "/torch/lib/libgomp-a34b3233.so.1": None,
        "/lib/libiomp5.so": None,
        "/usr/lib/libjemalloc.so.2": None,
    }
    monkeypatch.setattr(loaded_libraries, "loaded", lambda: sorted(libraries))
    monkeypatch.setattr(loaded_libraries, "opened", libraries.__getitem__)
    described = facts()
    assert described["mkl"] == "2024.2"
    assert (described["blis"], described["blis_kernels"]) == ("0.9.0", "zen2")
    assert described["openmp_runtime"] == "libgomp.so.1 and libiomp5.so"
    assert described["allocator"] == "jemalloc"
    assert described["openblas"] is None


def test_a_library_that_does_not_answer_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError(path)

    monkeypatch.setattr(loaded_libraries, "loaded", lambda: ["/lib/libopenblas.so.0", "/lib/libgomp.so.1"])
    monkeypatch.setattr(loaded_libraries, "opened", refuse)
    assert (facts()["openblas"], facts()["openmp_runtime"]) == (None, "libgomp.so.1")


def test_variables_of_the_allocator_are_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(loaded_libraries.ALLOCATOR_VARIABLES)]:
        monkeypatch.delenv(name)
    assert facts()["allocator_settings"] == ""
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    assert facts()["allocator_settings"] == "GLIBC_TUNABLES=glibc.malloc.arena_max=1 MALLOC_MMAP_THRESHOLD_=65536"


def test_this_process_is_described_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.__import__", _no_import(__import__))
    before = set(sys.modules)
    described = facts()
    assert set(sys.modules) == before
    assert described["c_library"].startswith(("glibc 2.", "musl"))
    assert described["allocator"]


def _no_import(real: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(name: str, *arguments: Any, **named: Any) -> Any:
        assert name in sys.modules, f"{name} would be imported"
        return real(name, *arguments, **named)

    return guarded


def test_files_that_are_not_libraries_or_not_mapped_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "55d0-55d1 r-xp 00000000 fe:00 1    /usr/bin/python3.11\n"
        "7f00-7f01 r--p 00000000 fe:00 2    /opt/with space/libopenblas.so.0\n"
        "7f01-7f02 r-xp 00001000 fe:00 2    /opt/with space/libopenblas.so.0\n"
        "7f02-7f03 rw-p 00000000 00:00 0 \n"
        "7f03-7f04 rw-p 00000000 00:00 0    [heap]\n"
    )
    monkeypatch.setattr(loaded_libraries, "MAPS", str(maps))
    assert loaded() == ["/opt/with space/libopenblas.so.0"]
    with pytest.raises(OSError, match="libopenblas"):
        loaded_libraries.opened(loaded()[0])  # nothing is loaded that was not
    maps.unlink()
    assert loaded() == []
