"""Choose the devices of a run: the CPU, a GPU, or several GPUs that can share a run."""

from collections.abc import Callable, Iterator, Sequence

from runner.core.errors import GpuError, Problem, UsageError
from runner.core.model import Device, Gpu


def choose_devices(device: str | None, say: Callable[[str], None] = lambda _: None) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices of ``--device``; by default the first GPU, without one the CPU (an empty tuple).

    Args:
        device: ``cpu``, ``cuda``, ``cuda:1`` or a GPU's UUID; several GPUs as ``cuda:0,1``, or UUIDs with commas
            between them; ``cuda:all`` for all; None for the default.
        say: gets a sentence if the driver is too old to be asked for GPUs, and the default is therefore the CPU.

    Raises:
        GpuError: there is no such GPU; or no device was given, and the driver does not work.
        UsageError: the GPUs cannot share a run.
    """
    from runner.gpu.detect import gpus

    if device == "cpu":
        return "cpu", ()
    try:
        all_gpus = gpus()
    except GpuError as error:
        problem = error.problems[0]
        if device is None and error.kind == "outdated":
            say(f"{problem.message}; the run measures on the CPU ({problem.hint})")
            return "cpu", ()
        hint = "; ".join(filter(None, [problem.hint, "`--device cpu` measures without a GPU"]))
        raise GpuError(Problem(problem.message, hint=hint), kind=error.kind) from error
    return pick_devices(device, all_gpus, "this machine")


def pick_devices(device: str | None, all_gpus: Sequence[Gpu], where: str) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices of a machine whose GPUs are known; ``where`` is what messages call it. See choose_devices."""
    if device is None:
        return ("cuda", (all_gpus[0],)) if all_gpus else ("cpu", ())
    if device == "cpu":
        return "cpu", ()
    if device == "cuda:all" and all_gpus:
        return "cuda", alike(tuple(all_gpus))
    names = (f"cuda:{name}" if position and name.isdigit() else name for position, name in enumerate(device.split(",")))
    picked = {_pick(name, all_gpus, where) for name in names}
    return "cuda", alike(tuple(gpu for gpu in all_gpus if gpu in picked))


def _pick(name: str, all_gpus: Sequence[Gpu], where: str) -> Gpu:
    index = name.removeprefix("cuda").removeprefix(":") or "0"
    for number, gpu in enumerate(all_gpus):
        if name == gpu.uuid or (name.startswith("cuda") and index == str(number)):
            return gpu
    seen = ", ".join(f"cuda:{number} ({gpu.name})" for number, gpu in enumerate(all_gpus)) or "no GPU at all"
    raise GpuError(Problem(f"there is no device {name!r}", hint=f"{where} shows {seen}; or --device cpu"))


LARGE = 1 << 28  # bytes by which the memory of boards of one kind may differ: defective rows are disabled


def alike(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return GPUs that can share a run, ordered by UUID, so that a resumed run has the same order.

    Raises:
        UsageError: they are of different kinds; or they are slices of a board, which share its power and clocks.
    """
    for gpu in gpus[1:]:
        for what in _apart(gpus[0], gpu):
            hint = "measure on one, or on several that are the same"
            raise UsageError(Problem(f"{gpus[0].name} and {gpu.name} cannot share a run: {what}", hint=hint))
    return tuple(sorted(gpus, key=lambda gpu: gpu.uuid))


def _apart(gpu: Gpu, other: Gpu) -> Iterator[str]:
    if gpu.uuid.startswith("MIG") or other.uuid.startswith("MIG"):
        yield "slices of a board share its power and its clocks"
    if (gpu.name, gpu.capability, gpu.driver) != (other.name, other.capability, other.driver):
        yield "they are not of one kind"
    if abs(gpu.memory - other.memory) > LARGE:
        yield "they have not as much memory"
