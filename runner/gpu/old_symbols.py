"""Calls of NVML under the names that old drivers export; the binding only knows newer ones.

Sources: nvml.h of CUDA 8 and of CUDA 11.0, and reports of drivers without the newer names:
https://github.com/NVIDIA/k8s-device-plugin/issues/331 (440.59 has no ``nvmlDeviceGetComputeRunningProcesses_v2``) and
https://github.com/wookayin/gpustat/issues/105.
"""

import ctypes
from typing import Any

INITIALISE = ("nvmlInit_v2", "nvmlInit")
"""Before ``nvmlInitWithFlags``, which R390 added."""
PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE
RESERVE = 8  # processes that may start between the two calls


class OldProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_t`` as it was before its second version, which is longer."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


def initialise(library: Any) -> int | None:  # noqa: ANN401  a ctypes.CDLL, whose attributes are functions
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
