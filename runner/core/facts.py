"""The facts that a run records about its cells, environments and machine: one line each, from which all lists derive.

To add a fact, add a line to ``FACTS``. Its type checks the replies of servers and the records; its other fields say
whether tables have a column for the fact and whether differences and quality checks use it. Comparisons list
differences in the order of these lines.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Recorder = Literal["harness", "runner", "environment", "framework", "machine"]
"""Who records a fact. ``harness`` and ``runner`` facts are in each record, ``environment`` and ``framework`` facts are
kept once for each environment (the latter only some frameworks have), and ``machine`` facts once for each run."""

FactType = Literal[
    "any",
    "amount",
    "check",
    "clocks",
    "count",
    "errors",
    "flag",
    "integers",
    "label",
    "number",
    "positive",
    "samples",
    "seconds",
    "server",
    "text",
    "texts",
]
"""The type of a fact: ``core.fact_types.STORED`` says what a record may have, ``measure.reply_fields.SENT`` a reply."""


class Fact(NamedTuple):
    """A fact and who uses it.

    Attributes:
        name: its key in records, in ``environments.json`` or in ``machine.json``; that of a number ends in its unit.
        recorder: who records it.
        label: what the report calls it where two sides differ; empty if differences do not list it.
        other_names: further keys with the same meaning, which some frameworks use.
        code: two cells that differ in it are not comparable, for this reason.
        column: its column in the tables of records: ``text``, a category; ``value``, any type; empty for none.
        quality: the quality checks read it.
        gpu_only: it has no influence on times that are measured on a CPU.
        type: which values it may have; ``any`` is any JSON value.
    """

    name: str
    recorder: Recorder
    label: str = ""
    other_names: tuple[str, ...] = ()
    code: str = ""
    column: Literal["", "text", "value"] = ""
    quality: bool = False
    gpu_only: bool = False
    type: FactType = "any"


FACTS: tuple[Fact, ...] = (
    Fact("backend", "framework", "backend"),
    Fact("device_name", "runner", "device", code="device", column="text"),
    Fact("device", "runner", code="device", column="text", type="text"),
    Fact("cuda", "environment", "CUDA", other_names=("cuda_version",), gpu_only=True),
    Fact("cudnn", "environment", "cuDNN", other_names=("cudnn_version",), gpu_only=True),
    Fact("driver", "runner", "driver", code="driver", column="text"),
    Fact("clocks", "runner", "clock request", code="clocks", column="text"),
    Fact("pinned", "runner", code="clocks", column="text"),
    Fact("held_sm_mhz", "runner", column="value", type="number"),
    Fact("effective_precision", "runner", "effective precision", code="precision", column="text"),
    Fact("tf32_default_matmul", "framework", "TF32 in products by default", gpu_only=True),
    Fact("tf32_default_cudnn", "framework", "TF32 in cuDNN by default", gpu_only=True),
    Fact("protocol", "runner", "protocol", code="protocol", column="text", type="text"),
    Fact("corpus", "runner", "corpus", code="corpus", column="text"),
    Fact("model_files", "runner", "files of the network", code="model-files", column="text"),
    Fact("harness", "runner", "harness version", code="harness", column="text"),
    Fact("python", "environment", "Python"),
    Fact("numpy", "environment", "NumPy"),
    Fact("jaxlib", "framework", "jaxlib"),
    Fact("keras", "framework", "Keras"),
    Fact("blas", "environment", "BLAS"),
    Fact("onednn", "environment", "oneDNN"),
    Fact("openmp", "environment", "OpenMP"),
    Fact("cpu", "environment", "CPU kernels"),
    Fact("compiler", "environment", "compiler"),
    Fact("openblas", "environment", "OpenBLAS"),
    Fact("openblas_kernels", "environment", "OpenBLAS kernels"),
    Fact("openblas_integers", "environment", "OpenBLAS integers"),
    Fact("openblas_threads", "environment", "OpenBLAS threads"),
    Fact("mkl", "environment", "MKL"),
    Fact("blis", "environment", "BLIS"),
    Fact("blis_kernels", "environment", "BLIS kernels"),
    Fact("openmp_runtime", "environment", "OpenMP library"),
    Fact("allocator", "environment", "memory allocator"),
    Fact("allocator_settings", "environment", "allocator settings"),
    Fact("c_library", "environment", "C library"),
    Fact("compiler_flags", "framework", "compiler flags"),
    Fact("optimizer", "framework", "graph optimiser"),
    Fact("optimizer_loop", "framework", "optimiser loop"),
    Fact("threads", "runner", "threads", code="threads", column="text"),
    Fact("intra_op_threads", "framework", "intra-op threads"),
    Fact("inter_op_threads", "framework", "inter-op threads"),
    Fact("xla_threads", "framework", "XLA threads"),
    Fact("xla_flags", "framework", "XLA flags"),
    Fact("env", "environment"),
    Fact("host", "machine", "host"),
    Fact("cpu", "machine", "processor"),
    Fact("cores", "machine", "cores"),
    Fact("memory_bytes", "machine", "memory"),
    Fact("processors_used", "machine", "processors used"),
    Fact("governor", "machine", "governor"),
    Fact("huge_pages", "machine", "transparent huge pages"),
    Fact("kernel", "machine", "kernel"),
    Fact("base", "environment", "base image"),
    Fact("overrides", "environment", "overridden packages"),
    Fact("device_uuid", "runner", column="text"),
    Fact("host", "runner", column="text"),
    Fact("kind", "runner", type="text"),
    Fact("release", "environment", type="text"),
    Fact("source_revision", "framework"),
    Fact("jaxlib_revision", "framework"),
    Fact("import_seconds", "environment", column="value", type="number"),
    Fact("import_cpu_seconds", "environment", column="value", type="number"),
    Fact("installed_bytes", "environment", column="value", type="amount"),
    Fact("digest", "runner", column="text"),
    Fact("server", "runner", column="text", type="server"),
    Fact("forward_error", "harness", type="number"),
    Fact("loss_error", "harness", type="number"),
    Fact("gradient_error", "runner", type="number"),
    Fact("gradient_errors", "harness", type="errors"),
    Fact("output_errors", "harness", type="errors"),
    Fact("model_check", "harness", column="value", quality=True, type="check"),
    Fact("set_too_late", "harness", column="value", quality=True, type="texts"),
    Fact("conduct", "harness", column="value", quality=True, type="texts"),
    Fact("data_digest", "harness", other_names=("digest",), type="text"),
    Fact("checked_case", "harness"),
    Fact("trained_weights", "harness"),
    Fact("arithmetic", "harness"),
    Fact("process", "harness", column="value", quality=True, type="text"),
    Fact("batch", "harness", column="value", quality=True, type="positive"),
    Fact("clock_seconds", "harness", type="seconds"),
    Fact("warmup_seconds", "harness", column="value", quality=True, type="seconds"),
    Fact("steady", "harness", column="value", quality=True, type="flag"),
    Fact("swapped_bytes", "harness", column="value", quality=True, type="count"),
    Fact("build_seconds", "harness", type="seconds"),
    Fact("check_seconds", "harness", type="seconds"),
    Fact("child_seconds", "harness", type="seconds"),
    Fact("round_seconds", "harness", type="seconds"),
    Fact("turns", "harness", type="integers"),
    Fact("turns_with", "harness", column="value", quality=True, type="label"),
    Fact("leads", "harness", type="samples"),
    Fact("first_call", "harness", type="count"),
    Fact("catch_up_seconds", "harness", type="seconds"),
    Fact("cpus", "harness", column="value", quality=True, type="integers"),
    Fact("gpu_affinity", "runner", "CPUs of the server", column="value", quality=True, type="text"),
    Fact("opened_by_import", "runner", "devices that the import opens"),
    Fact("load", "harness", type="number"),
    Fact("others_busy", "harness", column="value", quality=True, type="number"),
    Fact("os_threads", "harness", type="amount"),
    Fact("minor_faults_per_call", "harness", column="value", quality=True, type="number"),
    Fact("major_faults_per_call", "harness", column="value", type="number"),
    Fact("voluntary_switches_per_call", "harness", column="value", type="number"),
    Fact("involuntary_switches_per_call", "harness", column="value", type="number"),
    Fact("instructions_per_call", "harness", column="value", type="number"),
    Fact("peak_resident_bytes", "harness", column="value", type="amount"),
    Fact("huge_page_bytes", "harness", column="value", type="amount"),
    Fact("build_peak_bytes", "harness", column="value", type="amount"),
    Fact("first_call_peak_bytes", "harness", column="value", type="amount"),
    Fact("step_peak_bytes", "harness", column="value", type="amount"),
    Fact("growth_bytes_per_call", "harness", column="value", quality=True, type="number"),
    Fact("first_call_seconds", "harness", column="value", type="seconds"),
    Fact("compiled_graphs", "harness", column="value", type="count"),
    Fact("graph_breaks", "harness", column="value", type="count"),
    Fact("graph_break_reasons", "harness", column="value", type="texts"),
    Fact("recompilations", "harness", column="value", type="count"),
    Fact("stolen", "harness", column="value", quality=True, type="number"),
    Fact("clock_mhz", "harness", column="value", quality=True, type="clocks"),
    Fact("throttled", "harness", column="value", quality=True, type="count"),
    Fact("held_back", "harness", column="value", type="texts"),
    Fact("power_watts", "runner", column="value", type="number"),
    Fact("temperature_celsius", "runner", column="value", type="number"),
    Fact("joules_per_step", "runner", column="value", type="number"),
    Fact("waited_after", "harness", column="value", type="text"),
    Fact("wait_seconds", "harness", column="value", type="seconds"),
    Fact("latency_seconds", "harness", column="value", type="seconds"),
    Fact("dispatch_seconds", "harness", column="value", type="seconds"),
    Fact("device_seconds", "harness", column="value", type="seconds"),
    Fact("device_time_method", "harness", column="value", type="text"),
    Fact("host_bound", "harness", column="value", quality=True, type="flag"),
    Fact("peak_bytes", "harness", column="value", type="amount"),
)

CODES = ("device", "driver", "clocks", "protocol", "precision", "threads", "corpus", "model-files", "harness")
"""Why two cells are not comparable; where several hold, the first one is a row's code."""

COMPARABLE: Mapping[str, str] = {fact.name: fact.code for code in CODES for fact in FACTS if fact.code == code}
"""Fact that both sides must agree in -> code of the row where they do not."""


def harness_key(fact: Fact) -> str:
    """Return the key of a fact in the harness's answer."""
    return (*fact.other_names, fact.name)[0]


HARNESS_FACTS: Mapping[str, str] = {fact.name: harness_key(fact) for fact in FACTS if fact.recorder == "harness"}
"""Fact of a record -> its key in the harness's answer."""

TEXT_COLUMNS = (*COMPARABLE, *(fact.name for fact in FACTS if fact.column == "text" and not fact.code))
VALUE_COLUMNS = tuple(fact.name for fact in FACTS if fact.column == "value")
"""Facts with a column in the tables of records: as text, and of whatever type the fact has."""

QUALITY_FACTS = tuple(fact.name for fact in FACTS if fact.quality)
"""Facts that the quality checks read."""

SHOWN_DIFFERENCES = tuple(fact for fact in FACTS if fact.label)
"""Facts that are listed where two sides differ in them, in this order."""
