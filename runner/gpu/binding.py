"""Functions of NVIDIA's management library by name, through nvidia-ml-py: the only module that imports the binding.

A refusal of the driver raises a GpuError with a message.
"""

from typing import Any

from runner.core.errors import GpuError, Problem
from runner.gpu import old_symbols, types

NO_ANSWER = ("unsupported", "permission", "argument")  # kinds of errors that mean: this value is not reported


def initialise() -> None:
    """Initialise NVML, under an older name if the driver has no other; raise GpuError if that is not possible."""
    try:
        call("nvmlInit")
    except GpuError as error:
        if error.kind != "unsupported":
            raise
        code = old_symbols.initialise(library())
        if code is None:
            message = "the driver's library has none of the calls that open it"
            raise GpuError(Problem(message, hint=types.NEWER_DRIVER), kind="outdated") from error
        if code:
            raise types.error(_name(code), "nvmlInit") from error


def library() -> Any:  # noqa: ANN401  a ctypes.CDLL, whose attributes are functions
    """Return the library, once it is initialised."""
    import pynvml

    return pynvml.nvmlLib


def constant(name: str) -> int:
    """Return a number of NVML's header by its name without ``NVML_``, such as ``CLOCK_SM``."""
    import pynvml

    return int(getattr(pynvml, f"NVML_{name}"))


def query(function: str, *values: object) -> Any:  # noqa: ANN401  each function has its type
    """Return the result of a function; None if this GPU, driver or user cannot get it."""
    try:
        return call(function, *values)
    except GpuError as error:
        if error.kind not in NO_ANSWER:
            raise
        return None


def call(function: str, *values: object) -> Any:  # noqa: ANN401
    """Return the result of a function; an NVMLError becomes a GpuError."""
    import pynvml

    try:
        return getattr(pynvml, function)(*values)
    except pynvml.NVMLError as error:
        raise types.error(_name(error.value), function) from error


def _name(code: int) -> str:
    """Return NVML's name of an error, without ``NVML_ERROR_``; its number if this binding does not know it."""
    import pynvml

    beginning = "NVML_ERROR_"
    names = [name for name in dir(pynvml) if name.startswith(beginning) and getattr(pynvml, name) == code]
    return names[0].removeprefix(beginning) if names else str(code)
