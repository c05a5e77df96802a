"""Variables that a user sets for an environment: which names they may have, and which the runner needs for itself."""

import hashlib
import re
from collections.abc import Mapping

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
LONGEST_NAME = 100  # characters; the longest of the ones that frameworks document have about 60

_ISOLATED = "the interpreter of a server starts isolated, and ignores it"
_FOLDER = "each server has a folder of its own for it"
_GPU = "--device chooses the GPUs, and their server sees no others"
_CACHE = "compiler caches are in a folder that belongs to the image and the device"
_FORK = "it keeps a server from opening a GPU, after which it could not fork"
_FRAMEWORK = "the framework of the environment decides it"
_THREADS = "--threads sets it, and NAME@threads:4 for one environment"
_INTERFACE = "processes of an all-reduce find each other on the loopback interface"

REFUSED: Mapping[str, str] = {
    "PATH": "the interpreter of the image is found by it",
    "HOME": _FOLDER,
    "USER": "it is the user of the container",
    "TMPDIR": _FOLDER,
    "MATRIX_RUNNER_FOLDERS": _FOLDER,
    "CUDA_VISIBLE_DEVICES": _GPU,
    "NVIDIA_VISIBLE_DEVICES": _GPU,
    "NVIDIA_DRIVER_CAPABILITIES": _GPU,
    "PYTORCH_NVML_BASED_CUDA_CHECK": _FORK,
    "TRITON_NVML_BASED_CUDA_CHECK": _FORK,
    "TORCHINDUCTOR_CACHE_DIR": _CACHE,
    "TRITON_CACHE_DIR": _CACHE,
    "CUDA_CACHE_PATH": _CACHE,
    "CUDA_CACHE_MAXSIZE": _CACHE,
    "JAX_COMPILATION_CACHE_DIR": _CACHE,
    "XDG_CACHE_HOME": _CACHE,
    "TORCHINDUCTOR_COMPILE_THREADS": "a compiler must leave no processes behind",
    "KERAS_BACKEND": _FRAMEWORK,
    "KERAS_HOME": _FOLDER,
    "NPROC": _THREADS,
    "TF_NUM_INTRAOP_THREADS": _THREADS,
    "TF_NUM_INTEROP_THREADS": _THREADS,
    "GLOO_SOCKET_IFNAME": _INTERFACE,
    "NCCL_SOCKET_IFNAME": _INTERFACE,
}
"""Name -> why nobody but the runner may set it. Each is set, or needed, by a backend or the harness."""

REFUSED_PREFIXES: Mapping[str, str] = {"PYTHON": _ISOLATED}
"""The same for all names that begin with a text (``python -I``, https://docs.python.org/3/using/cmdline.html)."""


def refusal(name: str) -> str:
    """Return why a variable of this name cannot be set for an environment, as a clause; empty if it can.

    >>> refusal("OMP_NUM_THREADS"), refusal("KERAS_BACKEND")
    ('', 'the framework of the environment decides it')
    """
    by_prefix = (reason for prefix, reason in REFUSED_PREFIXES.items() if name.startswith(prefix))
    return REFUSED.get(name) or next(by_prefix, "")


def is_name(text: str) -> bool:
    """Return True if a text can be the name of a variable: letters, digits and underscores, no digit first."""
    return len(text) <= LONGEST_NAME and NAME.fullmatch(text) is not None


def refused_variable(variables: Mapping[str, str]) -> str:
    """Return the first of some stored variables that no user can set, with the reason, as a clause; empty without one.

    >>> refused_variable({"A": "1"}), refused_variable({"A": "1", "HOME": "/x"})
    ('', "'HOME': each server has a folder of its own for it")
    """
    for name in variables:
        reason = refusal(name) if is_name(name) else "it is no name of a variable"
        if reason:
            return f"{name!r}: {reason}"
    return ""


_MARK = " env:"


def digest_with(digest: str, variables: Mapping[str, str]) -> str:
    """Return what identifies an environment with its variables; without variables, the digest of its content.

    >>> digest_with("sha256:abc", {}), digest_with("sha256:abc", {"A": "1"})
    ('sha256:abc', 'sha256:abc env:f1d316d33044')
    """
    if not variables:
        return digest
    text = "\0".join(f"{name}={variables[name]}" for name in sorted(variables))
    return f"{digest}{_MARK}{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def content_digest(digest: str) -> str:
    """Return what identifies the content of an environment, whatever its variables are.

    >>> content_digest("sha256:abc env:f1d316d33044")
    'sha256:abc'
    """
    return digest.partition(_MARK)[0]
