"""The libraries below a framework that this process has loaded: BLAS, OpenMP, the C library and its allocator.

A wheel contains copies of such libraries, and no list of installed packages names their versions. The functions that a
library exports tell its version. This module imports and loads nothing, and leaves out a library without such functions.
Call it in a process that is not timed.

References:
    Names of files and functions: threadpoolctl 3.7, https://github.com/joblib/threadpoolctl (``LibController``), and
    cblas.h of OpenBLAS. OpenBLAS before 0.3.4 exports no version; the names of its files in wheels have it.
"""

import ctypes
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAPS = "/proc/self/maps"
OPENBLAS_FILES = ("libopenblas", "libscipy_openblas")
OPENBLAS_AFFIXES = [(prefix, suffix) for prefix in ("", "scipy_") for suffix in ("", "64_", "_64")]
OPENBLAS_RELEASE = re.compile(r"-r(\d+)-[0-9a-f]+(?:-[0-9a-f]+)?\.(\d+(?:\.\d+)*)|-r(\d+(?:\.\d+)+)")
BLIS_FILES = ("libblis",)
MKL_FILES = ("libmkl_rt", "libmkl_core")
MKL_RELEASE = re.compile(r"Version ([\d.]+)")
OPENMP_FILES = ("libgomp", "libiomp5", "libomp")
HASH = re.compile(r"-[0-9a-f]{6,}")  # in the names of files in wheels
ALLOCATORS = (("libjemalloc", "jemalloc"), ("libtcmalloc", "tcmalloc"), ("libmimalloc", "mimalloc"))
ALLOCATOR_VARIABLES = ("MALLOC_", "GLIBC_TUNABLES", "MIMALLOC_", "TCMALLOC_")
LIBRARIES = ("openblas", "mkl", "blis", "openmp_runtime")
TEXT_LENGTH = 200  # characters of a version


def facts() -> "dict":
    """Return the facts of all libraries that this process has loaded; the version of one that it has not is None."""
    paths = loaded()
    described = dict.fromkeys(LIBRARIES)
    for describe in (openblas, blis, mkl, openmp, c_library):
        try:
            described.update(describe(paths))
        except Exception:  # a library that does not answer, or not as expected
            pass
    return described


def loaded() -> "list":
    """Return the paths of the shared libraries in this process, each once and in order."""
    try:
        with open(MAPS, encoding="utf-8", errors="replace") as handle:
            columns = [line.rstrip("\n").split(None, 5) for line in handle]
    except OSError:
        return []
    return sorted({line[5] for line in columns if len(line) == 6 and ".so" in os.path.basename(line[5])})


def named(paths: "list", names: "tuple") -> "list":
    """Return the paths whose file names begin with one of some names."""
    return [path for path in paths if os.path.basename(path).startswith(names)]


def opened(path: "str") -> "Any":
    """Return a library that this process has loaded already. Raises OSError if it has not."""
    return ctypes.CDLL(path, mode=getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_NOW)


def text_of(function: "Any", *arguments: "Any") -> "str":
    """Return the text that a function of a library returns."""
    function.restype = ctypes.c_char_p
    return (function(*arguments) or b"").decode("ascii", "replace")[:TEXT_LENGTH]


def joined(values: "Any") -> "str":
    """Return the values that copies of a library have, each once: a process may have loaded several.

    >>> joined(["0.3.21", "0.3.7", "0.3.21"])
    '0.3.21 and 0.3.7'
    """
    return " and ".join(sorted({str(value) for value in values}))


def gathered(copies: "list") -> "dict":
    """Return fact -> its values over the copies of a library; a fact that no copy has is left out."""
    names = sorted({name for copy in copies for name in copy})
    return {name: joined(copy[name] for copy in copies if name in copy) for name in names}


def openblas(paths: "list") -> "dict":
    """Return the version of OpenBLAS, the width of its integers, its kernels on this processor, and its threads."""
    return gathered([of_openblas(path, opened(path)) for path in named(paths, OPENBLAS_FILES)])


def of_openblas(path: "str", library: "Any") -> "dict":
    """Return the facts of one copy of OpenBLAS; none if its functions have other names."""
    affixes = [each for each in OPENBLAS_AFFIXES if hasattr(library, "openblas_get_config".join(each))]
    if not affixes:
        return {}
    config = text_of(getattr(library, "openblas_get_config".join(affixes[0]))).split()
    described = {"openblas_integers": "{} bits".format(64 if {"USE64BITINT", "USE_64BITINT"} & set(config) else 32)}
    version = config[1] if config[:1] == ["OpenBLAS"] else openblas_release(os.path.basename(path))
    if version:
        described["openblas"] = version
    for fact, name in (("openblas_kernels", "openblas_get_corename"), ("openblas_threads", "openblas_get_num_threads")):
        function = getattr(library, name.join(affixes[0]), None)
        if function is not None:
            described[fact] = function() if fact == "openblas_threads" else text_of(function)
    return described


def openblas_release(name: "str") -> "str":
    """Return the release in the name of a file of a wheel; empty if there is none.

    >>> openblas_release("libopenblasp-r0-34a18dc3.3.7.so"), openblas_release("libopenblas.so.0")
    ('0.3.7', '')
    """
    match = OPENBLAS_RELEASE.search(name)
    if match is None:
        return ""
    return match.group(3) or "{}.{}".format(match.group(1), match.group(2))


def blis(paths: "list") -> "dict":
    """Return the version of BLIS, and its kernels on this processor."""
    copies = []
    for path in named(paths, BLIS_FILES):
        library = opened(path)
        described = {"blis": text_of(library.bli_info_get_version_str)}
        if hasattr(library, "bli_arch_query_id") and hasattr(library, "bli_arch_string"):
            described["blis_kernels"] = text_of(library.bli_arch_string, library.bli_arch_query_id())
        copies.append(described)
    return gathered(copies)


def mkl(paths: "list") -> "dict":
    """Return the version of an MKL with files of its own; where a framework contains MKL, the framework names it."""
    copies = []
    for path in named(paths, MKL_FILES):
        function = getattr(opened(path), "MKL_Get_Version_String", None)
        if function is not None:
            text = ctypes.create_string_buffer(TEXT_LENGTH)
            function(text, TEXT_LENGTH)
            match = MKL_RELEASE.search(text.value.decode("ascii", "replace"))
            copies += [{"mkl": match.group(1)}] if match else []
    return gathered(copies)


def openmp(paths: "list") -> "dict":
    """Return the run-time libraries of OpenMP by the names of their files, without the hashes of wheels.

    They do not tell their versions, but the file name of GCC's has that of its interface.
    """
    names = [HASH.sub("", os.path.basename(path)) for path in named(paths, OPENMP_FILES)]
    return {"openmp_runtime": joined(names)} if names else {}


def c_library(paths: "list") -> "dict":
    """Return the C library with its version, the allocator of memory, and the variables that set it up."""
    described = {}
    version = glibc_version() or ("musl" if named(paths, ("ld-musl", "libc.musl")) else "")
    if version:
        described["c_library"] = version
    others = [name for prefix, name in ALLOCATORS if named(paths, (prefix,))]
    described["allocator"] = joined(others) or "that of the C library"
    settings = sorted(name for name in os.environ if name.startswith(ALLOCATOR_VARIABLES))
    described["allocator_settings"] = " ".join("{}={}".format(name, os.environ[name]) for name in settings)
    return described


def glibc_version() -> "str":
    """Return the version of the GNU C library, ``glibc 2.36``; empty for another one."""
    function = getattr(ctypes.CDLL(None), "gnu_get_libc_version", None)
    return "glibc {}".format(text_of(function)) if function is not None else ""
