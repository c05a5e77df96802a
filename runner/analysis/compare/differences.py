"""In what two environments differ beside a ratio: all that their runs recorded of them, what time depends on first."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

from runner.analysis.compare.pairing import Pair, Side
from runner.analysis.model import Difference, Kind
from runner.core import units
from runner.core.model import Cell

NONE = "none"
"""A fact that was asked for, and of which there is none; one that nobody asked for is not known."""

PLACES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("backend", "own", ("backend",)),
    ("device", "rounds", ("device_name",)),
    ("CUDA", "facts", ("cuda", "cuda_version")),
    ("cuDNN", "facts", ("cudnn", "cudnn_version")),
    ("driver", "rounds", ("driver",)),
    ("clock request", "rounds", ("clocks",)),
    ("effective precision", "rounds", ("effective_precision",)),
    ("TF32 in products by default", "own", ("tf32_default_matmul",)),
    ("TF32 in cuDNN by default", "own", ("tf32_default_cudnn",)),
    ("protocol", "rounds", ("protocol",)),
    ("corpus", "rounds", ("corpus",)),
    ("harness version", "rounds", ("harness",)),
    ("Python", "facts", ("python",)),
    ("NumPy", "facts", ("numpy",)),
    ("BLAS", "facts", ("blas",)),
    ("oneDNN", "facts", ("onednn",)),
    ("OpenMP", "facts", ("openmp",)),
    ("jaxlib", "own", ("jaxlib",)),
    ("CPU kernels", "facts", ("cpu",)),
    ("compiler", "facts", ("compiler",)),
    ("graph optimiser", "own", ("optimizer",)),
    ("optimiser loop", "own", ("optimizer_loop",)),
    ("threads", "rounds", ("threads",)),
    ("intra-op threads", "own", ("intra_op_threads",)),
    ("inter-op threads", "own", ("inter_op_threads",)),
    ("XLA threads", "own", ("xla_threads",)),
    ("XLA flags", "own", ("xla_flags",)),
    ("host", "machine", ("host",)),
    ("processor", "machine", ("cpu",)),
    ("cores", "machine", ("cores",)),
    ("memory", "machine", ("memory_bytes",)),
    ("processors used", "machine", ("processors_used",)),
    ("governor", "machine", ("governor",)),
    ("kernel", "machine", ("kernel",)),
    ("base image", "facts", ("base",)),
)
"""Name, where it is recorded, under which names; in the order they are shown.

``own`` are facts that only some frameworks have: beside another framework they are settings of its own. ``machine``
differs where the sides are of different runs.
"""

FOR_GPU = frozenset({"CUDA", "cuDNN", "TF32 in products by default", "TF32 in cuDNN by default"})
"""What has no part in a time that was measured on a CPU."""

LEFT_OUT = frozenset(
    {
        *("framework", "version", "release", "packages", "digest"),  # these have a place of their own
        *("device", "gpu"),  # the records name the device
        *("image", "pin", "registry_digests", "pulled", "interpreter"),  # follow from base image and digest
        *("import_seconds", "bytes"),  # measured, and never twice the same
    }
)
NAMES = {"threads": "threads by its own account"}
SHORT = (
    (re.compile(r"^Intel\(R\) (?:oneAPI )?Math Kernel Library Version ([\d.]+).*$"), r"MKL \1"),
    (re.compile(r"^Intel\(R\) MKL-DNN v?|^CPU capability usage: |^OpenMP (?=\d)"), ""),
)
"""Pattern -> what is written for it: libraries introduce themselves at length."""


class RunFacts(NamedTuple):
    """What a run says of its machine, and of each environment."""

    machine: Mapping[str, Any]
    environments: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """What is known of one side.

    Attributes:
        framework: empty where it is not known.
        facts: of the environment; ``rounds`` those of its records, and ``machine`` those of the machine.
    """

    framework: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    rounds: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def text(self, place: str, keys: Sequence[str]) -> str | None:
        """Return the first of some facts that the side has, as text; None where it has none of them."""
        found: Mapping[str, Any] = getattr(self, "facts" if place == "own" else place)
        return next((text(key, found[key]) for key in keys if key in found), None)


def environment_differences(
    matches: Iterable[tuple[Side, Side, Sequence[Pair]]], told: Mapping[str, RunFacts]
) -> dict[str, tuple[Difference, ...]]:
    """Return environment -> in what it differs from the base; who is laid beside a publication is left out.

    Args:
        matches: base, other, and their cells that belong together. The sides may be of different runs.
        told: run -> what it says.
    """
    found = {}
    for base, other, pairs in matches:
        both = [pair for pair in pairs if pair.base in base.measured and pair.other in other.measured]
        one = known(base, [pair.base for pair in both], told)
        two = known(other, [pair.other for pair in both], told)
        if not (base.figures or other.figures):
            found[other.environment] = differences(one, two)
    return found


def known(side: Side, cells: Iterable[Cell], told: Mapping[str, RunFacts]) -> SideFacts:
    """Return what is known of a side, by its run and by the records of some of its cells."""
    run = told.get(side.run, RunFacts({}, {}))
    values: dict[str, set[str]] = {}
    for cell in cells:
        for name, had in side.measured[cell].facts.items():
            values.setdefault(name, set()).update(had - {""})
    rounds = {name: " and ".join(sorted(had)) for name, had in values.items() if had}
    facts = run.environments.get(side.environment, {})
    machine = {name: value for name, value in run.machine.items() if name != "cpu" or rounds.get("device") != "cpu"}
    return SideFacts(framework=side.framework, facts=facts, rounds=rounds, machine=machine)


def differences(base: SideFacts, other: SideFacts) -> tuple[Difference, ...]:
    """Return in what two sides differ, what time depends on first; what is equal, or known of neither, is left out."""
    base, other = (replace(side, facts=_tidy(side.facts)) for side in (base, other))
    found = [*_framework(base, other), *_placed(base, other), *_rest(base, other)]
    covered = {one.name.lower(): one.kind for one in found}
    found += _packages(base.facts.get("packages"), other.facts.get("packages"), covered)
    kinds: tuple[Kind, ...] = get_args(Kind)
    return tuple(sorted(found, key=lambda one: kinds.index(one.kind)))


def text(key: str, value: object) -> str:
    """Return a fact as people read it.

    >>> text("blas", "Intel(R) Math Kernel Library Version 2020.0.0")
    'MKL 2020.0.0'
    """
    if value is None or value in ("", [], {}):
        return NONE
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text(name, value[name])}" for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(text("", one) for one in value)
    if isinstance(value, (int, float)):
        return _number(key, value)
    found = str(value)
    for pattern, short in SHORT:
        found = pattern.sub(short, found)
    return found


def _number(key: str, value: float) -> str:
    """Return a number, a truth, or a version that cuDNN gives as a number: 7402 is 7.4.2, and 91002 is 9.10.2.

    References:
        CUDNN_VERSION in cudnn_version.h of cuDNN 8 and 9.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_bytes"):
        return units.memory(value)
    if key == "cudnn" and isinstance(value, int) and value >= 1000:
        major, rest = divmod(value, 10_000 if value >= 90_000 else 1_000)
        return f"{major}.{rest // 100}.{rest % 100}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _tidy(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an environment, those that are one thing in two parts as one."""
    found = dict(facts)
    if found.get("built_with_cuda") is False and "cuda_version" not in found:
        found["cuda"] = None
    found.pop("built_with_cuda", None)
    if "backend_version" in found:
        found["backend"] = f"{found.get('backend', '')} {found.pop('backend_version')}".strip()
    image, pin = found.get("base") or found.get("image"), str(found.get("pin") or "")
    if image:
        found["base"] = f"{image}@{pin[:19]}" if pin.startswith("sha256:") else image
    return found


def _framework(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    one, two = (side.text("facts", ("version", "release")) for side in (base, other))
    name = base.framework or "framework"
    if base.framework != other.framework:
        one, two = (" ".join(filter(None, (side.framework, it))) for side, it in ((base, one), (other, two)))
        name = "framework"
    if one != two:
        yield Difference(name=name, base=one or None, other=two or None, kind="framework")


def _placed(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    on_cpu = base.rounds.get("device") == other.rounds.get("device") == "cpu"
    for name, place, keys in PLACES:
        one, two = base.text(place, keys), other.text(place, keys)
        if one != two:
            own = place == "own" and base.framework != other.framework and None in {one, two}
            kind: Kind = "rest" if own or (on_cpu and name in FOR_GPU) else "speed"
            yield Difference(name=name, base=one, other=two, kind=kind)
    one, two = (side.text("facts", ("digest",)) for side in (base, other))
    if one != two:
        yield Difference(name="digest", base=one, other=two, kind="digest")


def _rest(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    """Give the facts that have no place in the order; many are of one framework alone."""
    placed = {key for _, place, keys in PLACES if place in {"facts", "own"} for key in keys}
    for key in sorted({*base.facts, *other.facts} - placed - LEFT_OUT):
        one, two = base.text("facts", (key,)), other.text("facts", (key,))
        if one != two:
            yield Difference(name=NAMES.get(key, key.replace("_", " ")), base=one, other=two, kind="rest")


def _packages(
    base: Mapping[str, str] | None, other: Mapping[str, str] | None, covered: Mapping[str, Kind]
) -> Iterator[Difference]:
    """Give the packages that differ or that one side lacks, but for those whose name and kind were given before."""
    if base is None or other is None:
        counts = [None if one is None else str(len(one)) for one in (base, other)]
        if base is not other:
            yield Difference(name="packages", base=counts[0], other=counts[1], kind="speed")
        return
    one, two = ({_plain(name): (name, version) for name, version in side.items()} for side in (base, other))
    for name in sorted(one.keys() | two.keys()):
        spelt = (one.get(name) or two[name])[0]
        left, right = (side[name][1] if name in side else None for side in (one, two))
        kind: Kind = "alone" if left is None or right is None else "package"
        before = covered.get(re.sub(r"-[cg]pu$", "", name))
        if left != right and (before is None or (before == "framework" and kind == "alone")):
            yield Difference(name=spelt, base=left, other=right, kind=kind)


def _plain(name: str) -> str:
    """Return the name of a package as indexes compare it: by PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
