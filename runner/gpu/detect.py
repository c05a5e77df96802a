"""Which GPUs are here."""

import os
from collections.abc import Mapping

from runner.model import Gpu


def gpus(environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the GPUs this process may use, in the order in which a framework would number them.

    That is ``CUDA_VISIBLE_DEVICES`` where it is set, as a scheduler does; empty where there is no driver or no GPU.
    """
    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    return present() if wanted is None else visible(present(), wanted)


def visible(found: tuple[Gpu, ...], wanted: str) -> tuple[Gpu, ...]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` names, by index or by the beginning of a UUID, up to a bad one.

    Source: CUDA C++ Programming Guide, environment variables.
    """
    chosen: list[Gpu] = []
    for name in (part.strip() for part in wanted.split(",")):
        named = [gpu for index, gpu in enumerate(found) if name and (name == str(index) or gpu.uuid.startswith(name))]
        if len(named) != 1:
            break
        chosen += named
    return tuple(chosen)


def present() -> tuple[Gpu, ...]:
    """Return the GPUs the driver shows, in its order."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            found.append(
                Gpu(
                    uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
                    name=str(pynvml.nvmlDeviceGetName(handle)),
                    capability=(int(major), int(minor)),
                    driver=driver,
                    memory=_memory(handle),
                )
            )
        return tuple(found)
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _memory(handle: object) -> int:
    """Return a GPU's memory in bytes; 0 where it has none of its own, and the driver refuses to say."""
    import pynvml

    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        return 0
