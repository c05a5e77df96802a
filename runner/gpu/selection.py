"""Which devices a run measures on: the CPU, a GPU, or several that may share a run."""

from collections.abc import Iterator, Sequence

from runner.core.errors import GpuError, Problem, UsageError
from runner.core.model import Device, Gpu


def choose_devices(wanted: str | None) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices: the first GPU where there is one, else the CPU, which is no GPU; or what was asked for.

    Args:
        wanted: ``cpu``, ``cuda``, ``cuda:1`` or a GPU's UUID; several GPUs as ``cuda:0,1``, or UUIDs with commas
            between them; ``cuda:all`` for every one; None for what there is.

    Raises:
        GpuError: that GPU is not there; or nothing was asked for, and a driver is here that does not work.
        UsageError: several were asked for that cannot share a run.
    """
    from runner.gpu.detect import gpus

    if wanted == "cpu":
        return "cpu", ()
    try:
        found = gpus()
    except GpuError as error:
        problem = error.problems[0]
        hint = "; ".join(filter(None, [problem.hint, "`--device cpu` measures without a GPU"]))
        raise GpuError(Problem(problem.message, hint=hint), kind=error.kind) from error
    return pick_devices(wanted, found, "this machine")


def pick_devices(wanted: str | None, found: Sequence[Gpu], where: str) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices of a machine whose GPUs are known; ``where`` is what messages call it. See choose_devices."""
    if wanted is None:
        return ("cuda", (found[0],)) if found else ("cpu", ())
    if wanted == "cpu":
        return "cpu", ()
    if wanted == "cuda:all" and found:
        return "cuda", alike(tuple(found))
    names = (f"cuda:{name}" if place and name.isdigit() else name for place, name in enumerate(wanted.split(",")))
    picked = {_pick(name, found, where) for name in names}
    return "cuda", alike(tuple(gpu for gpu in found if gpu in picked))


def _pick(wanted: str, found: Sequence[Gpu], where: str) -> Gpu:
    index = wanted.removeprefix("cuda").removeprefix(":") or "0"
    for number, gpu in enumerate(found):
        if wanted == gpu.uuid or (wanted.startswith("cuda") and index == str(number)):
            return gpu
    seen = ", ".join(f"cuda:{number} ({gpu.name})" for number, gpu in enumerate(found)) or "no GPU at all"
    raise GpuError(Problem(f"there is no device {wanted!r}", hint=f"{where} shows {seen}; or --device cpu"))


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


def _apart(one: Gpu, other: Gpu) -> Iterator[str]:
    if one.uuid.startswith("MIG") or other.uuid.startswith("MIG"):
        yield "slices of a board share its power and its clocks"
    if (one.name, one.capability, one.driver) != (other.name, other.capability, other.driver):
        yield "they are not of one kind"
    if abs(one.memory - other.memory) > LARGE:
        yield "they have not as much memory"
