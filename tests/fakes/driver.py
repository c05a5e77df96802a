"""The stand-in for NVIDIA's driver: builds nvml.c, makes the file that its GPUs live in, and changes them in use."""

import ctypes
import mmap
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parent / "nvml.c"
LIBRARY = "libnvidia-ml.so.1"  # what nvidia-ml-py opens
STATE = "NVML_STANDIN"
ROOT = "NVML_STANDIN_ROOT"  # whoever has it is root to the stand-in
COMPILERS = ("cc", "gcc", "clang")
MAGIC = 0x4E564D4C

NOBODY = 1 << 30
"""A number that no process has: Linux gives at most 4,194,304."""
NO_PERMISSION, UNSUPPORTED, INVALID, LOST, NO_FUNCTION = 4, 3, 2, 15, 13
TDP = 0xFFFFFF01
ARCHITECTURES = {"Kepler": 2, "Maxwell": 3, "Pascal": 4, "Volta": 5, "Turing": 6, "Ampere": 7, "Ada": 8, "Hopper": 9}
CAPABILITIES = {"Kepler": (3, 7), "Maxwell": (5, 2), "Pascal": (6, 1), "Volta": (7, 0), "Turing": (7, 5)}
CAPABILITIES |= {"Ampere": (8, 0), "Ada": (8, 9), "Hopper": (9, 0)}
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
SUITE = os.environ.setdefault(f"NVML_STANDIN_SUITE{WORKER}", secrets.token_hex(4))
"""Part of a GPU's UUID: a GPU has one guardian on a machine, and workers of pytest-xdist have GPUs of their own."""
UUID = f"GPU-{SUITE}-0000-0000-0000-00000000000{{}}"

u32, u64 = ctypes.c_uint32, ctypes.c_uint64


class _Rule(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 64),
        *((name, u32) for name in ("answer", "after", "met", "unused")),
        ("seconds", ctypes.c_double),
    )


class _Device(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char * 96) for name in ("uuid", "name")),
        *((name, u32) for name in ("architecture", "major", "minor", "lost")),
        *((name, u32) for name in ("mig", "ecc", "persistent", "has_application")),
        *((name, u32) for name in ("sm_lowest", "sm_highest", "sm_step", "sm_base")),
        *((name, u32) for name in ("sm_slowed", "busy", "power", "celsius", "slices", "unused")),
        ("memory_clocks", u32 * 8),
        *((name, u32 * 2) for name in ("application", "application_default", "locked_sm", "locked_memory")),
        ("processes", u32 * 8),
        *((name, u64) for name in ("memory", "reasons", "energy")),
        ("counters", u64 * 5),
    )


class _Entry(ctypes.Structure):
    _fields_ = (
        ("nanoseconds", u64),
        *((name, u32) for name in ("pid", "device", "answer", "a", "b", "unused")),
        ("name", ctypes.c_char * 48),
    )


class _State(ctypes.Structure):
    _fields_ = (
        *((name, u32) for name in ("magic", "devices", "only_root", "entries")),
        ("driver", ctypes.c_char * 80),
        ("clients", u32 * 256),
        ("rules", _Rule * 16),
        ("device", _Device * 4),
        ("log", _Entry * 4096),
    )


class Set(NamedTuple):
    """A call that changes something: its name without ``nvmlDevice``, its arguments, the answer, and who made it."""

    name: str
    a: int
    b: int
    answer: int
    pid: int
    seconds: float


class StandIn:
    """GPUs that several processes see. ``gpu`` is the first one."""

    def __init__(self, path: Path, devices: int = 1) -> None:
        """Make the file, with idle Hopper GPUs that allow everything."""
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(_State)))
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.state: Any = _State.from_buffer(self.map)
        self.state.magic, self.state.devices, self.state.driver = MAGIC, devices, b"580.65.06"
        for number in range(devices):
            self.make(number)

    def close(self) -> None:
        """Let go of the file."""
        del self.state
        self.map.close()

    @property
    def gpu(self) -> Any:
        """The first GPU: its fields are those of ``struct device`` in nvml.c."""
        return self.state.device[0]

    @property
    def uuid(self) -> str:
        """The UUID of the first GPU."""
        return UUID.format(0)

    def make(self, number: int, architecture: str = "Hopper", *, application: bool = True) -> None:
        """Make a GPU anew, of an architecture; ``application`` says whether it has application clocks."""
        gpu = self.state.device[number]
        ctypes.memset(ctypes.addressof(gpu), 0, ctypes.sizeof(gpu))
        gpu.uuid, gpu.name = UUID.format(number).encode(), f"Stand-in {architecture}".encode()
        gpu.architecture = ARCHITECTURES[architecture]
        gpu.major, gpu.minor = CAPABILITIES[architecture]
        gpu.memory, gpu.ecc, gpu.mig = 80 << 30, 1, 0 if ARCHITECTURES[architecture] >= 7 else 2
        gpu.sm_lowest, gpu.sm_highest, gpu.sm_step, gpu.sm_base = 345, 1980, 15, 1590
        gpu.memory_clocks[0], gpu.memory_clocks[1] = 2619, 1593
        gpu.has_application = int(application)
        for pair in (gpu.application, gpu.application_default):
            pair[0], pair[1] = 2619, 1500
        gpu.power, gpu.celsius = 120_000, 41

    def rule(self, number: int, name: str, answer: int = 0, *, seconds: float = 0.0, after: int = 0) -> None:
        """Have calls, by a glob over their names, answer an error or take some seconds, after the first few of them."""
        rule = self.state.rules[number]
        rule.answer, rule.seconds, rule.after, rule.met = answer, seconds, after, 0
        rule.name = name.encode()

    def no_rules(self) -> None:
        """Let every call through again."""
        for rule in self.state.rules:
            rule.name = b""

    def pinned(self, number: int = 0) -> dict[str, tuple[int, int]]:
        """Return what is set on a GPU and is not the driver's default."""
        gpu = self.state.device[number]
        locked = {name: tuple(getattr(gpu, f"locked_{name}")) for name in ("sm", "memory")}
        locked = {name: pair for name, pair in locked.items() if pair[1]}
        if gpu.has_application and tuple(gpu.application) != tuple(gpu.application_default):
            locked["application"] = tuple(gpu.application)
        return locked

    def sets(self) -> list[Set]:
        """Return the calls that change something, whoever made them, in order."""
        return [
            Set(
                entry.name.decode().removeprefix("nvmlDevice"),
                entry.a,
                entry.b,
                entry.answer,
                entry.pid,
                entry.nanoseconds / 1e9,
            )
            for entry in self.state.log[: self.state.entries]
        ]

    def open_in(self) -> list[int]:
        """Return the processes that have the driver open and are alive."""
        return [pid for pid in self.state.clients if pid and Path(f"/proc/{pid}").exists()]


def compiler() -> str | None:
    """Return the C compiler that is here."""
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def built(folder: Path) -> Path:
    """Build the library into a folder, under the name that nvidia-ml-py opens; a warning is an error."""
    compiler_path = compiler()
    assert compiler_path is not None
    library = folder / LIBRARY
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY}")
    subprocess.run([compiler_path, *flags, "-o", str(library), str(SOURCE)], check=True)
    return library


def environment(library: Path, standin: StandIn) -> Mapping[str, str]:
    """Return what a process has to be started with to see the stand-in's GPUs."""
    folders = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"LD_LIBRARY_PATH": ":".join(folders), STATE: str(standin.path)}


@contextmanager
def in_this_process(library: Path, standin: StandIn) -> Iterator[None]:
    """Have nvidia-ml-py use the stand-in in this process, which may have looked for a driver before.

    The loader reads LD_LIBRARY_PATH when a process starts, so the library is put where the binding keeps the one that
    it has opened.
    """
    import pynvml

    before, known = pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache)
    path = os.environ.get(STATE)
    os.environ[STATE] = str(standin.path)
    pynvml.nvmlLib = ctypes.CDLL(str(library))
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(known)
        if path is None:
            del os.environ[STATE]
        else:
            os.environ[STATE] = path
