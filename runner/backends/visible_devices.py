"""The environment variables that show a server exactly the GPUs that it measures, and none on a CPU run.

``CUDA_VISIBLE_DEVICES`` is read by CUDA (CUDA C++ Programming Guide, environment variables), ``NVIDIA_VISIBLE_DEVICES``
by NVIDIA's container runtime where it is the engine's default: images set it to ``all``, and a request by CDI or by
``DeviceRequest`` does not take that back (https://docs.nvidia.com/datacenter/cloud-native/container-toolkit,
specialized configurations with Docker).
"""

from collections.abc import Mapping
from typing import Literal

Request = Literal["uuid", "cdi", "device", "all"]
"""How an engine is asked for GPUs: by UUID; by CDI name; by CDI name as if it were a device file, for Podman; or for
all that there are, the only way in WSL 2."""


def in_process(device: str) -> Mapping[str, str]:
    """Return the variables of a process.

    >>> in_process("cpu"), in_process("GPU-1,GPU-2")
    ({'CUDA_VISIBLE_DEVICES': ''}, {'CUDA_VISIBLE_DEVICES': 'GPU-1,GPU-2'})
    """
    return {"CUDA_VISIBLE_DEVICES": "" if device == "cpu" else device}


def in_container(device: str, request: Request) -> Mapping[str, str]:
    """Return the variables of a container.

    Args:
        device: ``cpu``, or UUIDs with commas between them.
        request: how the engine is asked for the GPUs. After a request by CDI the runtime must add none of its own.
    """
    if device == "cpu":
        return {**in_process(device), "NVIDIA_VISIBLE_DEVICES": "void"}
    visible = {"uuid": device, "cdi": "void", "device": "void", "all": "all"}[request]
    return {
        **in_process(device),
        "NVIDIA_VISIBLE_DEVICES": visible,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
