"""List the GPUs of this machine that this process may use."""

import os
from collections.abc import Mapping
from pathlib import Path

from runner.core.errors import GpuError, Problem
from runner.core.files import read_line
from runner.core.model import Gpu
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.types import NEWER_DRIVER

BUS = Path("/sys/bus/pci/devices")
NONE = frozenset({"", "-1", "none", "void", "NoDevFiles"})  # values that schedulers and users set for no GPU


def gpus(environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the GPUs this process may use, in the order in which frameworks number them.

    Follows ``CUDA_VISIBLE_DEVICES``; empty without a driver or a GPU. A GPU in MIG mode is replaced by its slices.

    Raises:
        GpuError: the driver does not work or answer; or the variable names no GPU of this machine.
    """
    all_gpus, names = present(), environ.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return all_gpus
    chosen = visible(all_gpus, names)
    if all_gpus and not chosen and names.strip() not in NONE:
        here = ", ".join(f"{number} ({gpu.name}, {gpu.uuid})" for number, gpu in enumerate(all_gpus))
        what = f"CUDA_VISIBLE_DEVICES is {names!r}, and no GPU here is called so"
        raise GpuError(Problem(what, hint=f"there are {here}"))
    return chosen


def answering(environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the result of ``gpus``; empty if the driver does not work."""
    try:
        return gpus(environ)
    except GpuError:
        return ()


def visible(all_gpus: tuple[Gpu, ...], names: str) -> tuple[Gpu, ...]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` names, by index or UUID prefix, up to the first invalid name.

    Source: CUDA C++ Programming Guide, environment variables.
    """
    chosen: list[Gpu] = []
    for name in (part.strip() for part in names.split(",")):
        named = [
            gpu for index, gpu in enumerate(all_gpus) if name and (name == str(index) or gpu.uuid.startswith(name))
        ]
        if len(named) != 1:
            break
        chosen += named
    return tuple(chosen)


def present() -> tuple[Gpu, ...]:
    """Return the GPUs that the driver lists, in its order, without lost ones.

    Raises:
        GpuError: as for ``gpus``.
    """
    try:
        return call_with_timeout(_present)
    except GpuError as error:
        if error.kind == "missing" or (error.kind == "unloaded" and not on_the_bus()):
            return ()
        raise


def on_the_bus() -> bool:
    """Return whether a display controller of NVIDIA is installed, even without a driver (PCI vendor 10de, class 03)."""
    devices = BUS.glob("*/vendor")
    return any(
        read_line(path) == "0x10de" and read_line(path.with_name("class")).startswith("0x03") for path in devices
    )


def _present() -> tuple[Gpu, ...]:
    all_gpus = []
    with nvml.opened() as driver:
        for device in driver.devices():
            try:
                all_gpus += [part.gpu() for part in (device.slices() if device.sliced() else (device,))]
            except GpuError as error:
                if error.kind == "unsupported":  # without its compute capability nothing can be planned for it
                    message = f"driver {driver.version} does not describe its GPUs: {error.problems[0].message}"
                    raise GpuError(Problem(message, hint=NEWER_DRIVER), kind="outdated") from error
                # otherwise it was lost after the driver listed it
    return tuple(all_gpus)
