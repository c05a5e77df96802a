"""PyTorch's own profilers: torch.profiler where it exists (1.8.1), torch.autograd.profiler in earlier releases (0.2).

Work on a GPU is counted for the operator that started it. Only where that leaves out a tenth of the GPU's time or more,
as in a CUDA graph, which starts its kernels without operators, the rows are those of the kernels.
"""

import importlib

from ...profile_rows import NoProfile, Row, nested

ATTRIBUTED = 0.9  # smallest share of a GPU's time that the rows of operators may have


def table(run: "object", device: "str") -> "tuple":
    """Return (the profiler's name, rows) of what ``run`` does; times of PyTorch are in microseconds.

    Raises:
        NoProfile: the release has no profiler.
    """
    try:
        modern = importlib.import_module("torch.profiler")
    except ImportError:
        modern = None
    if hasattr(modern, "profile"):
        kinds = modern.ProfilerActivity
        activities = [kinds.CPU] + ([kinds.CUDA] if device == "cuda" else [])
        return "torch.profiler", averages(modern.profile(activities=activities), run)
    try:
        autograd = importlib.import_module("torch.autograd.profiler")
    except ImportError:
        raise NoProfile("this release of PyTorch has no profiler") from None
    try:
        profiler = autograd.profile(use_cuda=device == "cuda")
    except TypeError:  # 0.2 and 0.3
        profiler = autograd.profile()
    return "torch.autograd.profiler", averages(profiler, run)


def averages(profiler: "object", run: "object") -> "list":
    """Return the rows of a profiler that watches ``run``."""
    with profiler as profile:
        run()
    means = list(profile.key_averages())
    if means and not hasattr(means[0], "self_cpu_time_total"):  # 1.0: the table has no self times
        return without_self_times(profile.function_events)
    operators = [mean for mean in means if not is_on_device(mean)]
    kernels = [mean for mean in means if is_on_device(mean) and not getattr(mean, "is_user_annotation", False)]
    attributed = sum(map(device_microseconds, operators))
    on_device = sum(map(device_microseconds, kernels))
    by_kernel = attributed < ATTRIBUTED * on_device
    rows = [row_of(mean, 0.0 if by_kernel else device_microseconds(mean)) for mean in operators]
    if by_kernel:
        rows += [Row(mean.key, mean.count, 0.0, device_microseconds(mean) / 1e6) for mean in kernels]
    return rows


def row_of(mean: "object", device: "float") -> "Row":
    """Return the row of an average, with its microseconds on the device."""
    return Row(mean.key, mean.count, mean.self_cpu_time_total / 1e6, device / 1e6, mean.cpu_time_total / 1e6)


def is_on_device(mean: "object") -> "bool":
    """Return whether an average is of a kernel or a copy of the device, and not of an operator."""
    return str(getattr(mean, "device_type", "CPU")).rpartition(".")[2] != "CPU"


def device_microseconds(mean: "object") -> "float":
    """Return the self time on the device; its name changed in 2.4, when devices other than CUDA's got times."""
    for name in ("self_device_time_total", "self_cuda_time_total", "cuda_time_total"):
        if hasattr(mean, name):
            return float(getattr(mean, name))
    return 0.0


def without_self_times(events: "list") -> "list":
    """Return rows from single events, for releases whose averages have total times alone; times as in ``nested``."""
    on_host = [(e.thread, e.name, e.cpu_interval.start / 1e6, e.cpu_interval.end / 1e6) for e in events]
    rows = {row.name: row for row in nested(on_host)}
    on_device = [
        (event.thread, event.name, kernel.interval.start / 1e6, kernel.interval.end / 1e6)
        for event in events
        for kernel in getattr(event, "kernels", ())
    ]  # of all that an operator and those within it did on the device
    for row in nested(on_device):
        rows[row.name].device = row.host
    return list(rows.values())
