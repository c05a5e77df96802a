"""Which GPUs are here."""

from runner.model import Gpu


def gpus() -> tuple[Gpu, ...]:
    """Return the GPUs the driver shows, in its order; empty where there is no driver or no GPU."""
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
                )
            )
        return tuple(found)
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()
