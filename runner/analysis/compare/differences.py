"""Lists how two environments differ in what their runs recorded, facts that times depend on first."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

from runner.analysis.compare.pairing import CellPair, Side
from runner.analysis.comparison_model import Difference, Kind
from runner.catalog.source_repositories import commit_of, short
from runner.core import units
from runner.core.facts import SHOWN_DIFFERENCES, Recorder
from runner.core.model import Cell
from runner.core.variables import content_digest

ABSENT = "none"
"""The text of a fact that was recorded as absent; one that was not recorded is not known."""

NOT_SET = "not set"
"""The text of a variable of one side that the other side does not have."""

SHOWN_ELSEWHERE = frozenset(
    {
        *("framework", "version", "release", "packages", "digest"),  # each has a line of its own
        *("device", "gpu"),  # the records name the device
        *("source_revision", "jaxlib_revision"),  # beside the digest
        *("image", "pin", "registry_digests", "pulled", "interpreter"),  # follow from base image and digest
        *("team_image", "not_pulled"),  # likewise
        *("import_seconds", "import_cpu_seconds", "bytes", "installed_bytes"),  # metrics, and the size of a build
        "env",  # a line for each variable
    }
)
COMPANIONS: Mapping[str, frozenset[str]] = {
    "torch": frozenset({"triton", "pytorch-triton"}),  # compiles the kernels of torch.compile
    "tensorflow": frozenset({"keras", "tf-keras"}),
    "jax": frozenset({"jaxlib", "optax"}),
    "theano": frozenset({"lasagne"}),
}
"""Framework -> packages that do a part of its work, so that times depend on them as on its own release."""
FROM_VARIABLES = {"xla_flags": "XLA_FLAGS"}
"""Fact -> the variable that it is the value of, which is listed where the user has set it."""
LABELS = {"threads": "threads reported by the framework"}
SHORTENED = (
    (re.compile(r"^Intel\(R\) (?:oneAPI )?Math Kernel Library Version ([\d.]+).*$"), r"MKL \1"),
    (re.compile(r"^Intel\(R\) MKL-DNN v?|^CPU capability usage: |^OpenMP (?=\d)"), ""),
)
"""Pattern -> replacement: libraries give their names at length."""


class RunFacts(NamedTuple):
    """The facts of a run's machine, and of each of its environments."""

    machine: Mapping[str, Any]
    environments: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """The facts of one side.

    Attributes:
        framework: empty if it is not known.
        facts: facts of the environment.
        rounds: facts of its records.
        machine: facts of the machine.
    """

    framework: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    rounds: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def recorded_by(self, recorder: Recorder) -> Mapping[str, Any]:
        """Return the facts from one recorder."""
        if recorder in {"environment", "framework"}:
            return self.facts
        return self.machine if recorder == "machine" else self.rounds

    def text(self, recorder: Recorder, names: Sequence[str]) -> str | None:
        """Return the first of some facts that the side has, as text; None if it has none of them."""
        facts = self.recorded_by(recorder)
        return next((text(name, facts[name]) for name in names if name in facts), None)


def environment_differences(
    matches: Iterable[tuple[Side, Side, Sequence[CellPair]]], facts_by_run: Mapping[str, RunFacts]
) -> dict[str, tuple[Difference, ...]]:
    """Return environment -> its differences from the base; comparisons with a published side are left out.

    Args:
        matches: base, other, and the cells that are compared. The sides may be from different runs.
        facts_by_run: run -> its facts.
    """
    by_environment = {}
    for base, other, pairs in matches:
        if base.figures or other.figures:
            continue
        measured = [pair for pair in pairs if pair.base in base.measured and pair.other in other.measured]
        base_facts = side_facts(base, [pair.base for pair in measured], facts_by_run)
        other_facts = side_facts(other, [pair.other for pair in measured], facts_by_run)
        by_environment[other.environment] = differences(base_facts, other_facts)
    return by_environment


def side_facts(side: Side, cells: Iterable[Cell], facts_by_run: Mapping[str, RunFacts]) -> SideFacts:
    """Return the facts of a side, from its run and from the records of some of its cells."""
    run = facts_by_run.get(side.run, RunFacts({}, {}))
    values: dict[str, set[str]] = {}
    for cell in cells:
        for name, of_cell in side.measured[cell].facts.items():
            values.setdefault(name, set()).update(of_cell - {""})
    rounds = {name: " and ".join(sorted(texts)) for name, texts in values.items() if texts}
    facts = run.environments.get(side.environment, {})
    machine = {name: value for name, value in run.machine.items() if name != "cpu" or rounds.get("device") != "cpu"}
    return SideFacts(framework=side.framework, facts=facts, rounds=rounds, machine=machine)


def differences(base: SideFacts, other: SideFacts) -> tuple[Difference, ...]:
    """Return how two sides differ, facts that times depend on first; equal and unknown facts are left out."""
    base, other = (replace(side, facts=_normalised(side.facts)) for side in (base, other))
    listed = [*_framework(base, other), *_variables(base, other)]
    listed += [*_listed_facts(base, other), *_other_facts(base, other)]
    kind_by_name = {difference.name.lower(): difference.kind for difference in listed}
    companions = COMPANIONS.get(base.framework, frozenset()) if base.framework == other.framework else frozenset()
    packages = [side.facts.get("packages") or None for side in (base, other)]  # empty where they could not be read
    listed += _packages(packages[0], packages[1], kind_by_name, companions)
    kinds: tuple[Kind, ...] = get_args(Kind)
    return tuple(sorted(listed, key=lambda difference: kinds.index(difference.kind)))


def text(name: str, value: object) -> str:
    """Return a fact as text for a report.

    >>> text("blas", "Intel(R) Math Kernel Library Version 2020.0.0")
    'MKL 2020.0.0'
    """
    if value is None or value in ("", [], {}):
        return ABSENT
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text(key, value[key])}" for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(text("", item) for item in value)
    if isinstance(value, (int, float)):
        return _number(name, value)
    shortened = str(value)
    for pattern, replacement in SHORTENED:
        shortened = pattern.sub(replacement, shortened)
    return shortened


def _number(name: str, value: float) -> str:
    """Return a number, a truth value, or cuDNN's version number as text: 7402 is 7.4.2, and 91002 is 9.10.2.

    References:
        CUDNN_VERSION in cudnn_version.h of cuDNN 8 and 9.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes"):
        return units.memory(value)
    if name == "cudnn" and isinstance(value, int) and value >= 1000:
        major, minor_and_patch = divmod(value, 10_000 if value >= 90_000 else 1_000)
        return f"{major}.{minor_and_patch // 100}.{minor_and_patch % 100}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _normalised(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an environment, with facts in two parts joined."""
    joined = dict(facts)
    if joined.get("built_with_cuda") is False and "cuda_version" not in joined:
        joined["cuda"] = None
    joined.pop("built_with_cuda", None)
    if "backend_version" in joined:
        joined["backend"] = f"{joined.get('backend', '')} {joined.pop('backend_version')}".strip()
    image, pin = joined.get("base") or joined.get("image"), str(joined.get("pin") or "")
    if image:
        joined["base"] = f"{image}@{pin[:19]}" if pin.startswith("sha256:") else image
    return joined


def _framework(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    texts = [side.text("environment", ("version", "release")) for side in (base, other)]
    name = base.framework or "framework"
    if base.framework != other.framework:
        sides = zip((base, other), texts, strict=True)
        texts = [" ".join(filter(None, (side.framework, release))) for side, release in sides]
        name = "framework"
    if texts[0] != texts[1]:
        yield Difference(name=name, base=texts[0] or None, other=texts[1] or None, kind="framework")


def _variables(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    """Yield the variables that the user has set for one environment alone, or to other values."""
    of_base, of_other = (dict(side.facts.get("env") or {}) for side in (base, other))
    for name in sorted(of_base.keys() | of_other.keys()):
        if of_base.get(name) != of_other.get(name):
            values = (_value_of_variable(side.get(name)) for side in (of_base, of_other))
            yield Difference(name=f"variable {name}", base=next(values), other=next(values), kind="speed")


def _value_of_variable(value: str | None) -> str:
    """Return the value of a variable as text, so that an empty one is no missing one."""
    return NOT_SET if value is None else value or "empty"


def _listed_facts(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    """Yield the differences in the facts that ``runner.core.facts`` lists, in its order, then revision and digest.

    NumPy's version is the release where NumPy is the framework, which ``_framework`` yields.
    """
    release = base.framework if base.framework == other.framework else ""
    on_cpu = base.rounds.get("device") == other.rounds.get("device") == "cpu"
    variables = {name for side in (base, other) for name in side.facts.get("env") or {}}
    for fact in SHOWN_DIFFERENCES:
        if FROM_VARIABLES.get(fact.name) in variables:
            continue
        of_base, of_other = (side.text(fact.recorder, (fact.name, *fact.other_names)) for side in (base, other))
        if of_base != of_other and fact.label.lower() != release:
            frameworks_differ = base.framework != other.framework
            of_one_framework = fact.recorder == "framework" and frameworks_differ and None in {of_base, of_other}
            kind: Kind = "rest" if of_one_framework or (on_cpu and fact.gpu_only) else "speed"
            yield Difference(name=fact.label, base=of_base, other=of_other, kind=kind)
    revisions = [short(commit_of(str(side.facts.get("source_revision")))) for side in (base, other)]
    if base.framework == other.framework and all(revisions) and revisions[0] != revisions[1]:
        yield Difference(name="source revision", base=revisions[0], other=revisions[1], kind="digest")
    of_base, of_other = (_content(side.text("environment", ("digest",))) for side in (base, other))
    if of_base != of_other:
        yield Difference(name="digest", base=of_base, other=of_other, kind="digest")


def _content(digest: str | None) -> str | None:
    """Return the digest of what an environment holds, for its variables are listed by themselves."""
    return None if digest is None else content_digest(digest)


def _other_facts(base: SideFacts, other: SideFacts) -> Iterator[Difference]:
    """Yield the differences in all other facts; many belong to one framework only."""
    listed = {
        name
        for fact in SHOWN_DIFFERENCES
        if fact.recorder in {"environment", "framework"}
        for name in (fact.name, *fact.other_names)
    }
    for name in sorted({*base.facts, *other.facts} - listed - SHOWN_ELSEWHERE):
        of_base, of_other = base.text("environment", (name,)), other.text("environment", (name,))
        if of_base != of_other:
            label = LABELS.get(name, name.replace("_", " "))
            yield Difference(name=label, base=of_base, other=of_other, kind="rest")


def _packages(
    base: Mapping[str, str] | None,
    other: Mapping[str, str] | None,
    kind_by_name: Mapping[str, Kind],
    companions: frozenset[str],
) -> Iterator[Difference]:
    """Yield the packages that differ or that one side lacks, without those already listed by name and kind."""
    if base is None or other is None:
        counts = [None if packages is None else str(len(packages)) for packages in (base, other)]
        if base is not other:
            yield Difference(name="packages", base=counts[0], other=counts[1], kind="speed")
        return
    in_base, in_other = ({_normalised_name(name): (name, side[name]) for name in side} for side in (base, other))
    for name in sorted(in_base.keys() | in_other.keys()):
        spelling = (in_base.get(name) or in_other[name])[0]
        of_base, of_other = (side[name][1] if name in side else None for side in (in_base, in_other))
        kind: Kind = "speed" if name in companions else "package"
        kind = "alone" if of_base is None or of_other is None else kind
        listed = kind_by_name.get(re.sub(r"-[cg]pu$", "", name))
        if of_base != of_other and (listed is None or (listed == "framework" and kind == "alone")):
            yield Difference(name=spelling, base=of_base, other=of_other, kind=kind)


def _normalised_name(name: str) -> str:
    """Return a package's name as indexes compare it, by PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
