"""Functions of NVIDIA's management library by name, through nvidia-ml-py: the only module that imports the binding.

A refusal of the driver raises a GpuError with a message.

Old drivers export some calls under names that the binding does not know. Sources: nvml.h of CUDA 8 and of CUDA 11.0,
and reports of drivers without the newer names: https://github.com/NVIDIA/k8s-device-plugin/issues/331 (440.59 has no
``nvmlDeviceGetComputeRunningProcesses_v2``) and https://github.com/wookayin/gpustat/issues/105.
"""

import ctypes
from typing import Any

from runner.core.errors import GpuError, Problem
from runner.gpu import types

NO_ANSWER = ("unsupported", "permission", "argument")  # kinds of errors that mean: this value is not reported


def initialise() -> None:
    """Initialise NVML, under an older name if the driver has no other; raise GpuError if that is not possible."""
    try:
        call("nvmlInit")
    except GpuError as error:
        if error.kind != "unsupported":
            raise
        code = _initialise_old(library())
        if code is None:
            message = "the driver's library has none of the calls that open it"
            raise GpuError(Problem(message, hint=types.NEWER_DRIVER), kind="outdated") from error
        if code:
            raise types.error(_name(code), "nvmlInit") from error


def library() -> Any:  # noqa: ANN401  a ctypes.CDLL, whose attributes are functions
    """Return the library, once it is initialised."""
    import pynvml

    return pynvml.nvmlLib


def constant(name: str) -> int:
    """Return a number of NVML's header by its name without ``NVML_``, such as ``CLOCK_SM``."""
    import pynvml

    return int(getattr(pynvml, f"NVML_{name}"))


def query(function: str, *values: object) -> Any:  # noqa: ANN401  each function has its type
    """Return the result of a function; None if this GPU, driver or user cannot get it."""
    try:
        return call(function, *values)
    except GpuError as error:
        if error.kind not in NO_ANSWER:
            raise
        return None


def call(function: str, *values: object) -> Any:  # noqa: ANN401
    """Return the result of a function; an NVMLError becomes a GpuError."""
    import pynvml

    try:
        return getattr(pynvml, function)(*values)
    except pynvml.NVMLError as error:
        raise types.error(_name(error.value), function) from error


def _name(code: int) -> str:
    """Return NVML's name of an error, without ``NVML_ERROR_``; its number if this binding does not know it."""
    import pynvml

    beginning = "NVML_ERROR_"
    names = [name for name in dir(pynvml) if name.startswith(beginning) and getattr(pynvml, name) == code]
    return names[0].removeprefix(beginning) if names else str(code)


INITIALISE = ("nvmlInit_v2", "nvmlInit")
"""Before ``nvmlInitWithFlags``, which R390 added."""
PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE
RESERVE = 8  # processes that may start between the two calls


class OldProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_t`` as it was before its second version, which is longer."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


def _initialise_old(library: Any) -> int | None:  # noqa: ANN401  a ctypes.CDLL, whose attributes are functions
    """Initialise NVML; return NVML's code of the result, 0 for success, or None if the library has no such call."""
    for name in INITIALISE:
        function = getattr(library, name, None)
        if function is not None:
            return int(function())
    return None


def compute_processes(library: Any, handle: object) -> tuple[int, ...] | None:  # noqa: ANN401
    """Return the ids of the processes that compute on a GPU; None if the driver does not report them.

    Args:
        library: the ctypes.CDLL.
        handle: NVML's handle of the GPU.
    """
    function = getattr(library, PROCESSES, None)
    if function is None:
        return None
    count = ctypes.c_uint(0)
    code = function(handle, ctypes.byref(count), None)
    if code == 0:
        return ()
    if code != TOO_SMALL:
        return None
    count.value += RESERVE
    processes = (OldProcessInfo * count.value)()
    if function(handle, ctypes.byref(count), processes):
        return None
    return tuple(int(process.pid) for process in processes[: count.value])
