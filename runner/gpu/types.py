"""The answers of NVIDIA's library as frozen values, and its errors as sentences; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from runner.core.errors import GpuError, Problem

Kind = Literal["missing", "unloaded", "outdated", "unsupported", "permission", "argument", "lost", "hang", "broken"]
"""What an error comes to: no driver; one that the kernel has not; one too old to be asked; this GPU or driver cannot;
not for this user; not this value; no GPU any more; no answer in time; anything else."""

NEWER_DRIVER = "install a driver of branch R390 or newer; R580 is the last for Maxwell, Pascal and Volta"

ERRORS: Mapping[str, tuple[Kind, str]] = {
    "UNINITIALIZED": ("broken", "the driver's library was not opened"),
    "INVALID_ARGUMENT": ("argument", "the driver does not take this value"),
    "NOT_SUPPORTED": ("unsupported", "this GPU or its driver cannot do that"),
    "NO_PERMISSION": ("permission", "the driver lets only root do that"),
    "ALREADY_INITIALIZED": ("broken", "the driver's library was opened twice"),
    "NOT_FOUND": ("argument", "the driver finds no such GPU or value"),
    "INSUFFICIENT_SIZE": ("broken", "the driver has more to say than it was given room for"),
    "INSUFFICIENT_POWER": ("broken", "a GPU's power cables are not attached"),
    "DRIVER_NOT_LOADED": ("unloaded", "NVIDIA's driver is not loaded"),
    "TIMEOUT": ("hang", "the driver gave up waiting for the GPU"),
    "IRQ_ISSUE": ("broken", "the driver gets no interrupts from a GPU"),
    "LIBRARY_NOT_FOUND": ("missing", "NVIDIA's driver library, libnvidia-ml.so.1, is not here"),
    "FUNCTION_NOT_FOUND": ("unsupported", "this driver is too old, or too new, for that"),
    "CORRUPTED_INFOROM": ("broken", "the GPU's information memory is damaged"),
    "GPU_IS_LOST": ("lost", "the GPU is lost: it has fallen off the bus or cannot be reached"),
    "RESET_REQUIRED": ("lost", "the GPU has to be reset before it can be used again"),
    "OPERATING_SYSTEM": ("broken", "the operating system or its control group keeps the driver from that"),
    "LIB_RM_VERSION_MISMATCH": ("broken", "the driver's library and its kernel module differ: start the machine anew"),
    "IN_USE": ("broken", "the GPU is in use"),
    "MEMORY": ("broken", "the driver has not enough memory"),
    "NO_DATA": ("unsupported", "the driver has no such figure"),
    "VGPU_ECC_NOT_SUPPORTED": ("unsupported", "this virtual GPU cannot do that with ECC"),
    "INSUFFICIENT_RESOURCES": ("broken", "the GPU is out of something other than memory"),
    "FREQ_NOT_SUPPORTED": ("unsupported", "the GPU does not have this frequency"),
    "ARGUMENT_VERSION_MISMATCH": ("unsupported", "this driver does not know this form of the question"),
    "DEPRECATED": ("unsupported", "the driver no longer does that"),
    "NOT_READY": ("broken", "the GPU is not ready yet"),
    "GPU_NOT_FOUND": ("missing", "the driver finds no GPU"),
    "INVALID_STATE": ("broken", "the GPU is in a state in which that cannot be done"),
    "RESET_TYPE_NOT_SUPPORTED": ("unsupported", "this GPU cannot be reset in that way"),
    "UNKNOWN": ("broken", "the driver failed, and does not say why"),
}
"""Name without ``NVML_ERROR_`` -> what it comes to, and a sentence. Source: nvml.h of NVML 13, nvmlReturn_t."""

KEPLER, PASCAL, VOLTA, TURING, AMPERE, ADA, HOPPER, BLACKWELL = 2, 4, 5, 6, 7, 8, 9, 10
ARCHITECTURES = {
    KEPLER: "Kepler",
    3: "Maxwell",
    PASCAL: "Pascal",
    VOLTA: "Volta",
    TURING: "Turing",
    AMPERE: "Ampere",
    ADA: "Ada",
    HOPPER: "Hopper",
    BLACKWELL: "Blackwell",
    13: "Rubin",
}
"""Source: nvml.h, NVML_DEVICE_ARCH_*."""

IDLE = 0x1
APPLICATION_CLOCKS = 0x2  # also called user-defined clocks
HELD_BACK = {
    0x4: "its power limit",
    0x8: "a hardware slowdown",
    0x20: "heat",
    0x40: "heat",
    0x80: "the power brake",
}
"""Bit of the clocks' event reasons -> what holds the clock back. Source: nvml.h, nvmlClocksEventReason."""

COUNTERS = {74: "its power limit", 269: "heat", 270: "heat", 271: "the power brake"}
"""Field that counts nanoseconds since the driver was loaded -> what held the clock back. Source: nvml.h."""


@dataclass(frozen=True, slots=True)
class ClockPair:
    """A clock of the memory and one of the multiprocessors (SM), in MHz."""

    memory: int
    sm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a GPU's clocks support, which decides how they can be held.

    Attributes:
        name: the GPU's, for messages.
        architecture: NVML's number; those of ``ARCHITECTURES``, later ones larger.
        memory: the memory clocks it has, in MHz, the highest first; empty if the driver does not list them.
        sm: the SM clocks at the highest memory clock, likewise.
        application: the present application clocks; None if it has none. ``default``: the driver's defaults.
        sliced: MIG is on; None if the GPU has no MIG.
    """

    name: str
    architecture: int
    memory: tuple[int, ...] = ()
    sm: tuple[int, ...] = ()
    application: ClockPair | None = None
    default: ClockPair | None = None
    sliced: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """A GPU at one moment; None for values that the driver does not report.

    Attributes:
        at: seconds of the monotonic clock.
        sm: clock of its multiprocessors in MHz; ``memory`` of its memory.
        reasons: mask of the clocks' event reasons.
        watts: power now; ``joules`` is energy since the driver was loaded, ``celsius`` the core's temperature.
        counted: throttle reason -> seconds since the driver was loaded, for those with a counter.
    """

    at: float = 0.0
    sm: int | None = None
    memory: int | None = None
    reasons: int | None = None
    watts: float | None = None
    joules: float | None = None
    celsius: int | None = None
    counted: Mapping[str, float] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """True if the clock is low because the GPU is idle."""
        return bool((self.reasons or 0) & IDLE)


CPU_WORDS = 64  # of 64 CPUs each: 4096, more than any machine has


def cpus_of_words(words: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of the bits that are set in words of 64 bits, the lowest first.

    >>> cpus_of_words((0b101, 1))
    (0, 2, 64)
    """
    return tuple(64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1)


def sysfs_address(bus: str | bytes) -> str:
    """Return a PCI address of NVML as the kernel writes it: a domain of four digits, lower case.

    >>> sysfs_address(b"00000000:3B:00.0")
    '0000:3b:00.0'
    """
    domain, _, rest = (bus if isinstance(bus, str) else bus.decode("ascii")).lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def held_back(mask: int) -> tuple[str, ...]:
    """Return the throttle reasons in a mask of event reasons.

    >>> held_back(0x61)
    ('heat',)
    """
    return tuple(dict.fromkeys(words for bit, words in HELD_BACK.items() if mask & bit))


def architecture(capability: tuple[int, int]) -> int:
    """Return NVML's number of the architecture with a compute capability, for drivers that do not report it.

    Source: CUDA C++ Programming Guide, compute capabilities.

    >>> architecture((7, 5)) == TURING, architecture((8, 6)) == AMPERE
    (True, True)
    """
    if capability[0] in {7, 8}:
        volta, later = (VOLTA, TURING) if capability[0] == 7 else (AMPERE, ADA)
        return later if capability in {(7, 5), (8, 9)} else volta
    known = {3: KEPLER, 5: 3, 6: PASCAL, 9: HOPPER}
    return known.get(capability[0], BLACKWELL if capability[0] >= 10 else 0)


def error(name: str, call: str) -> GpuError:
    """Return NVML's error of a name, ``NO_PERMISSION``, as a GpuError; ``call`` is the function that failed."""
    kind, sentence = ERRORS.get(name, ("broken", f"the driver failed with {name}"))
    hints = {
        "broken": f"{call} failed; `nvidia-smi -q` may say more",
        "lost": "`dmesg` says why; start the machine anew",
    }
    return GpuError(Problem(sentence, hint=hints.get(kind)), kind=kind)
