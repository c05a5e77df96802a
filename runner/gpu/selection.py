"""Which devices a run measures on: the CPU, a GPU, or several that may share a run."""

from collections.abc import Iterator, Sequence

from runner.core.errors import GpuError, Problem, UsageError
from runner.core.model import Device, Gpu


def choose_devices(device: str | None) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices: the first GPU where there is one, else the CPU, which is no GPU; or what was asked for.

    Args:
        device: ``cpu``, ``cuda``, ``cuda:1`` or a GPU's UUID; several GPUs as ``cuda:0,1``, or UUIDs with commas
            between them; ``cuda:all`` for every one; None for what there is.

    Raises:
        GpuError: that GPU is not there; or nothing was asked for, and a driver is here that does not work.
        UsageError: several were asked for that cannot share a run.
    """
    from runner.gpu.detect import gpus

    if device == "cpu":
        return "cpu", ()
    try:
        all_gpus = gpus()
    except GpuError as error:
        problem = error.problems[0]
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


LARGE = 1 << 28  # bytes by which the memory of boards of one kind may differ: rows that are broken are left out


def alike(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return GPUs that may work side by side, in an order that no numbering decides: a resumed run has them as before.

    Raises:
        UsageError: they are not of one kind; or they are slices of one board, which share its power and its clocks.
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
