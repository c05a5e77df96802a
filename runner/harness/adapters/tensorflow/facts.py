"""The facts of a TensorFlow build, its threads and its GPU; Keras on TensorFlow gives the same."""

import sys

from ...errors import CellFailure
from ..described import known

INTER_OP_THREADS = 1
"""One thread starts operations: a step is one chain of them, and a second pool would double what can run at once."""


def thread_facts(threads: "int") -> "dict":
    """Return the sizes of both thread pools."""
    return {"intra_op_threads": threads, "inter_op_threads": INTER_OP_THREADS}


def require_gpu(framework: "str", gpus: "list") -> "object":
    """Return the first GPU. Raises CellFailure, class ``device``, if there is none.

    Args:
        framework: the name for the message, ``TensorFlow`` or ``Keras``.
        gpus: the GPUs, or device descriptions of 1.x, in TensorFlow's own list.
    """
    if not gpus:
        raise CellFailure("device", "{} sees no GPU".format(framework))
    return gpus[0]


def build_facts_v1() -> "dict":
    """Return what compiled a wheel of 1.x, and what it was built for."""
    return dict(known(compiled_by), **dict(known(built_with_cuda), **known(cuda_versions)))


def source_revision() -> "dict":
    """Return the revision of the source in the form of ``git describe``, ``v2.21.0-rc1-5-ga481b10260d``."""
    import tensorflow as tf

    text = tf.__git_version__
    return {"source_revision": text.decode("ascii") if isinstance(text, bytes) else text}


def built_with_cuda() -> "dict":
    """Return whether the wheel is one for GPUs."""
    import tensorflow as tf

    return {"built_with_cuda": bool(tf.test.is_built_with_cuda())}


def cuda_versions() -> "dict":
    """Return the versions of CUDA and cuDNN that a wheel of 1.x, or of 2.0 to 2.2, was built with."""
    from tensorflow.python.platform import build_info

    names = ("cuda_version_number", "cudnn_version_number")
    return {name.replace("_number", ""): str(getattr(build_info, name)) for name in names if getattr(build_info, name, None)}


def compiled_by() -> "dict":
    """Return the compiler of the wheel, and the flags that an extension of it has to be compiled with, too."""
    import tensorflow as tf

    version = getattr(getattr(tf, "version", None), "COMPILER_VERSION", None) or tf.__compiler_version__
    flags = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
    return {"compiler": compiler_name(version), "extension_flags": " ".join(flags)}


def compiler_name(version: "str") -> "str":
    """Return the name and version of a compiler, from its macro ``__VERSION__``; that of GCC has no name.

    >>> compiler_name("9.3.1 20200408"), compiler_name("Ubuntu Clang 16.0.6 (++2023071004)")
    ('GCC 9.3.1 20200408', 'Ubuntu Clang 16.0.6')
    """
    version = version.split(" (")[0].strip()
    return "GCC " + version if version[:1].isdigit() else version


def keras_version() -> "dict":
    """Return the version of the Keras that TensorFlow has imported; in 2.13 and 2.14, ``tf.keras`` does not tell it."""
    import tensorflow as tf

    version = getattr(tf.keras, "__version__", None) or getattr(sys.modules.get("keras"), "__version__", None)
    return {"keras": version} if version else {}


def gpu_facts_v1(framework: "str", config: "object") -> "dict":
    """Return the description of the GPU in 1.x; ``config`` holds the settings of a session."""
    from tensorflow.python.client import device_lib

    gpu = require_gpu(framework, only_gpus(device_lib.list_local_devices(config)))
    return {"gpu": gpu.physical_device_desc}


def only_gpus(devices: "list") -> "list":
    """Return the GPUs among the devices of 1.x."""
    return [device for device in devices if device.device_type == "GPU"]


def build_facts_v2() -> "dict":
    """Return what compiled a wheel of 2.x, and what it was built for."""
    return dict(known(compiled_by), **(known(build_info) or build_facts_v1()))


def build_info() -> "dict":
    """Return what a wheel was built for by its own account, which exists since 2.3."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    cuda = {"built_with_cuda": bool(build.get("is_cuda_build"))}
    return dict(cuda, **{name: build[name] for name in ("cuda_version", "cudnn_version") if name in build})


def gpu_facts_v2(framework: "str") -> "dict":
    """Return the name of the GPU in 2.x; before 2.3, it is not known."""
    import tensorflow as tf

    devices = getattr(tf.config, "list_physical_devices", None) or tf.config.experimental.list_physical_devices
    gpu = require_gpu(framework, devices("GPU"))
    return known(lambda: {"gpu": tf.config.experimental.get_device_details(gpu).get("device_name", "")})
