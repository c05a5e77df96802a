"""Where compilers keep what they made: one folder for each environment and device, or an empty one to start cold."""

import os

VARIABLES = (
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "JAX_COMPILATION_CACHE_DIR",
    "XDG_CACHE_HOME",
)


def use(folder: "str") -> "None":
    """Point every compiler cache into ``folder``; call it before a framework compiles anything."""
    for name in VARIABLES:
        path = os.path.join(folder, name.lower())
        if not os.path.isdir(path):
            os.makedirs(path)
        os.environ[name] = path
    os.environ["CUDA_CACHE_MAXSIZE"] = str(4 << 30)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no worker processes that outlive a child
    os.environ["THEANO_FLAGS"] = "base_compiledir=" + os.path.join(folder, "theano")
