"""Environment variables that a user has set for an environment, and those that a user's file sets too late."""

import contextlib
import os

CHOSEN = set()
"""Names of the variables that the user has set for this environment: nothing of the harness replaces them."""

SET_TOO_LATE = set()
"""Names of the variables that the user's file has set in this process, after the import of the framework."""

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Thread counts that libraries read when they are loaded."""

READ_EARLY = (
    "CUBLAS_",  # https://docs.nvidia.com/cuda/cublas/index.html#results-reproducibility
    "CUDA_",  # https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
    "CUDNN_",  # https://docs.nvidia.com/deeplearning/cudnn, logging and plan caches
    "DNNL_",  # https://uxlfoundation.github.io/oneDNN, run-time controls
    "GOMP_",  # https://gcc.gnu.org/onlinedocs/libgomp/Environment-Variables.html
    "JAX_",  # https://docs.jax.dev/en/latest/config_options.html: read at import
    "KERAS_BACKEND",  # https://keras.io/getting_started: "must be set before importing keras"
    "KMP_",  # https://openmp.llvm.org/design/Runtimes.html#environment-variables
    "LD_LIBRARY_PATH",  # ld.so(8): read at the start of a process
    "LD_PRELOAD",
    "MALLOC_",  # mallopt(3): read at the start of a process; jemalloc has MALLOC_CONF
    "MKL_",  # https://www.intel.com/content/www/us/en/docs/onemkl, environment variables
    "NPROC",  # XLA: the size of its thread pool
    "NPY_",  # https://numpy.org/doc/stable/reference/global_state.html, simd/build-options: read at import
    "NUMEXPR_",  # https://numexpr.readthedocs.io
    "NVIDIA_TF32_OVERRIDE",  # https://docs.nvidia.com/cuda/cublas: read when a handle is made
    "OMP_",  # https://www.openmp.org/spec-html/5.0/openmpch6.html: "read only once"
    "OPENBLAS_",  # https://github.com/OpenMathLib/OpenBLAS#setting-the-number-of-threads
    "PYTORCH_",  # https://docs.pytorch.org/docs/stable/cuda_environment_variables.html
    "TCMALLOC_",  # https://gperftools.github.io/gperftools/tcmalloc.html
    "TF_",  # https://github.com/tensorflow/tensorflow: read when a library is loaded or a session starts
    "THEANO_FLAGS",  # https://theano-pymc.readthedocs.io, config: read at import
    "TORCH_",  # https://docs.pytorch.org/docs/stable/torch_environment_variables.html
    "XLA_",  # https://openxla.org/xla/flags_guidance: parsed when the first backend is made
)
"""How variables begin that a framework or its libraries have read once the framework is imported."""


def set_threads(threads: "int") -> "None":
    """Set the thread counts of libraries that the user has not set.

    Where the user has set OMP_NUM_THREADS, none is set: each library falls back to that, as it does in a script.
    """
    if "OMP_NUM_THREADS" not in CHOSEN:
        for name in THREADS:
            default(name, str(threads))


def default(name: "str", value: "str") -> "None":
    """Set a variable, unless the user has set it."""
    if name not in CHOSEN:
        os.environ[name] = value


def snapshot() -> "dict":
    """Return name -> value of the variables that are read early."""
    return {name: os.environ[name] for name in os.environ if name.startswith(READ_EARLY)}


@contextlib.contextmanager
def watched():
    """Note which variables, of those that are read early, a block sets, changes or removes: code of the user runs in it."""
    before = snapshot()
    try:
        yield
    finally:
        now = snapshot()
        SET_TOO_LATE.update(name for name in set(before) | set(now) if now.get(name) != before.get(name))


def unloaded() -> "str":
    """Return the first library of LD_PRELOAD that this process has not loaded; empty if it has all of them.

    ld.so(8) leaves out what it cannot load, and only writes so to stderr.
    """
    if "LD_PRELOAD" not in CHOSEN:
        return ""
    with open("/proc/self/maps") as maps:
        loaded = {os.path.basename(line.rstrip("\n").rpartition("/")[2]) for line in maps if "/" in line}
    for path in os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        if os.path.basename(os.path.realpath(path)) not in loaded and os.path.basename(path) not in loaded:
            return path
    return ""
