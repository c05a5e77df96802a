"""The facts of a TensorFlow build, its threads and its GPU; Keras on TensorFlow gives the same."""

from ...errors import CellFailure

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
    """Return what a wheel of 1.x was built for."""
    import tensorflow as tf
    from tensorflow.python.platform import build_info

    build = {"built_with_cuda": tf.test.is_built_with_cuda()}
    for name in ("cuda_version_number", "cudnn_version_number"):
        if getattr(build_info, name, None):
            build[name.replace("_number", "")] = str(getattr(build_info, name))
    return build


def gpu_facts_v1(framework: "str", config: "object") -> "dict":
    """Return the description of the GPU in 1.x; ``config`` holds the settings of a session."""
    from tensorflow.python.client import device_lib

    gpu = require_gpu(framework, only_gpus(device_lib.list_local_devices(config)))
    return {"gpu": gpu.physical_device_desc}


def only_gpus(devices: "list") -> "list":
    """Return the GPUs among the devices of 1.x."""
    return [device for device in devices if device.device_type == "GPU"]


def build_facts_v2() -> "dict":
    """Return what a wheel of 2.x was built for."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    cuda = {"built_with_cuda": bool(build.get("is_cuda_build"))}
    return dict(cuda, **{name: build[name] for name in ("cuda_version", "cudnn_version") if name in build})


def gpu_facts_v2(framework: "str") -> "dict":
    """Return the name of the GPU in 2.x."""
    import tensorflow as tf

    gpu = require_gpu(framework, tf.config.list_physical_devices("GPU"))
    return {"gpu": tf.config.experimental.get_device_details(gpu).get("device_name", "")}
