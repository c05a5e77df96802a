"""The device in JAX: selecting it, the precision of its products, and its memory."""

import os

from ...errors import CellFailure

PRECISIONS = {"tf32": "tensorfloat32"}  # of float32 products; JAX's ``highest`` for any other precision

NOT_CACHED = "JAX {} keeps no compiled programs on disk here, so that a warm start would be a cold one"


def select(device: "str") -> "object":
    """Restrict JAX to devices of this kind, so that it falls back to no other, and return the first of them.

    Raises:
        CellFailure: class ``device``, if there is none.
    """
    import jax

    jax.config.update("jax_platforms", device)
    try:
        return jax.devices(device)[0]
    except (AssertionError, RuntimeError) as error:  # 0.10.2 without its CUDA plugin: an assertion without a message
        reason = str(error) or "its plugin is missing"
        raise CellFailure("device", "JAX has no {} device here: {}".format(device, reason)) from error


def prepare(device: "str", precision: "str") -> "None":
    """Select the device, the precision of products, and the folder of the compilation cache."""
    import jax

    select(device)
    jax.config.update("jax_default_matmul_precision", PRECISIONS.get(precision, "highest"))
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR") if opens_files() else None
    set_if_known("jax_compilation_cache_dir", folder)
    set_if_known("jax_persistent_cache_min_compile_time_secs", 0.0)
    set_if_known("jax_persistent_cache_min_entry_size_bytes", -1)


def opens_files() -> "bool":
    """Return whether JAX can open the files of its cache, for which it takes ``etils.epath`` if etils is installed.

    Optax brings etils without the packages that its ``epath`` imports, which 1.11 of 2025 does at once. Then JAX 0.4.38
    fails at each program that it compiles with a cache.
    """
    try:
        import etils  # noqa: F401
    except ImportError:
        return True
    try:
        from etils import epath  # noqa: F401
    except ImportError:
        return False
    return True


def set_if_known(name: "str", value: "object") -> "None":
    """Set an option of the compilation cache on disk, unless the release has no such option: 0.4.18 has none of them."""
    import jax

    try:
        jax.config.update(name, value)
    except AttributeError:  # "Unrecognized config option"
        pass


def why_cold() -> "str":
    """Return what ``Implementation.why_cold`` does: releases that cannot cache programs leave the folder empty.

    JAX 0.4.18 has no option that names the folder of its compilers' cache. Some later releases have the option, but store
    nothing there on a CPU.
    """
    import jax

    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    if os.path.isdir(folder) and os.listdir(folder):
        return ""
    return NOT_CACHED.format(jax.__version__)


def peak_bytes() -> "object":
    """Return the peak of XLA's memory on the device in bytes; None for a CPU, which has no memory statistics."""
    import jax

    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
