"""The device in JAX: choosing it, and how products on it are rounded."""

import os

from ...errors import CellFailure

PRECISIONS = {"tf32": "tensorfloat32"}  # of products in single precision; else as exact as the device can


def choose(device: "str") -> "object":
    """Let JAX see this kind of device alone, so that it never takes another one instead; return the first of them.

    Raises:
        CellFailure: class ``device``, where there is none.
    """
    import jax

    jax.config.update("jax_platforms", device)
    try:
        return jax.devices(device)[0]
    except (AssertionError, RuntimeError) as error:  # 0.10.2 without its CUDA plugin: an assertion without a word
        reason = str(error) or "its plugin is missing"
        raise CellFailure("device", "JAX has no {} device here: {}".format(device, reason)) from error


def prepare(device: "str", precision: "str") -> "None":
    """Choose device, precision of products, and where compiled programs are kept."""
    import jax

    choose(device)
    jax.config.update("jax_default_matmul_precision", PRECISIONS.get(precision, "highest"))
    jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def peak_bytes() -> "object":
    """Return the most bytes that XLA has held on the device; None for a CPU, whose client tells nothing."""
    import jax

    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
