"""What runs on what: releases as numbers, and GPU code in wheels against the GPU and the driver."""

import math
import re

from runner.matrix import Environment
from runner.model import Gpu, Skip

# What each build holds: compute capabilities with native code. Read from the wheels' fat binaries; compat notes of
# 2026-11-20. A GPU runs code of its own major version and of an equal or lower minor one.
NATIVE = {
    ("torch", "7.5"): (3.0, 3.5, 5.0, 5.2),
    ("torch", "8.0"): (3.0, 3.5, 5.0, 5.2, 6.0, 6.1),
    ("torch", "9.0"): (3.5, 5.0, 6.0, 6.1, 7.0),
    ("torch", "10.2"): (3.7, 5.0, 6.0, 7.0, 7.5),
    ("torch", "13.0"): (7.5, 8.0, 8.6, 9.0, 10.0, 12.0),
    ("tensorflow", "9.0"): (3.5, 3.7, 5.2, 6.0, 6.1, 7.0),
    ("tensorflow", "10.0"): (3.5, 3.7, 5.2, 6.0, 6.1, 7.0),
    ("tensorflow", "12.5"): (6.0, 7.0, 8.0, 8.9),
    ("keras", "12.5"): (6.0, 7.0, 8.0, 8.9),
    ("jax", "12.9"): (5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0),
    # Not read from the builds: TensorFlow's documents of 0.8, and what the CUDA version can make at all.
    ("tensorflow", "7.5"): (3.5, 5.2),
    ("theano", "9.0"): (3.0, 3.5, 5.0, 5.2, 6.0, 6.1, 7.0),
    ("torch7", "8.0"): (3.0, 3.5, 5.0, 5.2, 6.0, 6.1),
}
# Capabilities that a build reaches by compiling its own intermediate code for the GPU, and that its makers support.
PORTABLE = {("tensorflow", "12.5"): (9.0,), ("keras", "12.5"): (9.0,)}

# CUDA -> the oldest Linux driver it runs on: NVIDIA CUDA Toolkit release notes, table of toolkit and driver versions;
# from CUDA 11 on the minimum of minor-version compatibility.
DRIVERS = {
    "7.5": "352.31",
    "8.0": "375.26",
    "9.0": "384.81",
    "10.0": "410.48",
    "10.2": "440.33",
    "11": "450.80",
    "12": "525.60",
    "13": "580",
}


def release(text: str) -> tuple[float, ...]:
    """Return a release as numbers that compare: ``1.12.1`` is (1, 12, 1), a floating ``2.*`` is (2, inf).

    A post release (``0.1.12_2``, ``0.3.1.post2``) counts as one more part.
    """
    parts = re.findall(r"\d+|\*", text)
    return tuple(math.inf if part == "*" else float(part) for part in parts)


def refuse(environment: Environment, gpu: Gpu) -> Skip | None:
    """Return why an environment's CUDA build cannot run on a GPU and its driver, None where it can.

    A build that would only run by compiling its intermediate code (PTX) for a GPU its makers never saw is refused:
    it takes minutes at every first call and its cuDNN was not made for that GPU.
    """
    variant = environment.variant("cuda")
    if variant is None or variant.cuda is None:
        return Skip("needs-gpu", "no CUDA build is declared for this environment; measure it with --device cpu")
    oldest = _oldest_driver(variant.cuda)
    if oldest and release(gpu.driver) < release(oldest):  # by parts: 384.130 is newer than 384.81
        return Skip("driver", f"CUDA {variant.cuda} needs driver {oldest} or newer, this machine has {gpu.driver}")
    native = NATIVE.get((environment.framework, variant.cuda))
    if native is None:
        return None
    major, minor = gpu.capability
    served = any(int(code) == major and round(code * 10) % 10 <= minor for code in native)
    if served or float(f"{major}.{minor}") in PORTABLE.get((environment.framework, variant.cuda), ()):
        return None
    newest = max(native)
    return Skip(
        "arch",
        f"the CUDA {variant.cuda} build of {environment.framework} {environment.release} has no code for "
        f"{gpu.name} (compute capability {major}.{minor}); its newest is {newest}",
    )


def _oldest_driver(cuda: str) -> str | None:
    return DRIVERS.get(cuda) or DRIVERS.get(cuda.split(".", maxsplit=1)[0])
