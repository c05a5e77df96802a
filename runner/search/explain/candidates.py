"""What may take a change back: switches of the framework, variables, packages and the Python of the other release.

Each candidate is the changed environment with one thing of it, or several, set as in the other one.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runner.catalog.switches import FLAG_LISTS, applying, with_variables
from runner.core.model import Device
from runner.matrix import Environment, Matrix
from runner.matrix.environments import package_name
from runner.matrix.fields import LONGEST_ID
from runner.releases.named_environments import with_python
from runner.search.explain.packages import End, different_packages

Kind = Literal["switch", "variable", "package", "python", "together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that may take the change back.

    Attributes:
        name: what its environment is called, after that of the changed release.
        kind: what it is.
        change: what is set, ``NumPy 1.26.4`` or ``A=1``.
        sentence: what that does; empty where the change says it.
        source: where it is documented, or which release has it.
        variables: name -> value, set in addition to those of the changed release.
        pins: requirements with the versions of the other release.
        python: the Python of the other release; empty for that of the changed one.
    """

    name: str
    kind: Kind
    change: str
    sentence: str = ""
    source: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    python: str = ""

    @property
    def is_built(self) -> bool:
        """Whether it has packages of its own; else it is the changed release, started with other variables."""
        return bool(self.pins or self.python)


def candidates(good: End, bad: End, device: Device, flags: Collection[str]) -> Iterator[Candidate]:
    """Yield what may take back what ``bad`` changed: variables, switches, packages, Python.

    Args:
        good: the release without the change.
        bad: the release with it.
        device: ``cpu`` or ``cuda``.
        flags: of the processor.
    """
    yield from _variables(good, bad)
    environment = bad.environment
    for switch in applying(environment.framework, bad.release, device, flags):
        if with_variables(environment.env, switch.variables) != environment.env:
            yield Candidate(
                name=switch.name,
                kind="switch",
                change=" ".join(f"{name}={value}" for name, value in switch.variables.items()),
                sentence=switch.sentence,
                source=switch.source,
                variables=switch.variables,
            )
    for name, version in different_packages(good, bad, device).items():
        text = f"{name} {version}"
        pin = f"{name}=={version}"
        yield Candidate(name=_id(f"{name}-{version}"), kind="package", change=text, source=good.name, pins=(pin,))
    python = good.environment.python
    if python and environment.python and python != environment.python:
        yield Candidate(name=f"py{python}", kind="python", change=f"Python {python}", source=good.name, python=python)


def _variables(good: End, bad: End) -> Iterator[Candidate]:
    before, after = good.environment.env, bad.environment.env
    for name, value in before.items():
        if after.get(name) != value:
            change = f"{name}={value}"
            named = _id(f"as-{good.name}-{name}".replace("_", "-"))
            yield Candidate(name=named, kind="variable", change=change, source=good.name, variables={name: value})


def together(parts: Sequence[Candidate]) -> Candidate:
    """Return several candidates as one; of two values of a variable that is no list of flags, the first one counts."""
    variables: dict[str, str] = {}
    for part in parts:
        new = {name: value for name, value in part.variables.items() if name in FLAG_LISTS or name not in variables}
        variables = with_variables(variables, new)
    return Candidate(
        name="together",
        kind="together",
        change=" + ".join(part.name for part in parts),
        variables=variables,
        pins=tuple(pin for part in parts for pin in part.pins),
        python=next((part.python for part in parts if part.python), ""),
    )


def environment_name(bad: End, candidate: Candidate) -> str:
    """Return the id of the environment of a candidate."""
    stem = _id(bad.name)
    return f"{stem[: LONGEST_ID - len(candidate.name) - 1].rstrip('-.')}-{candidate.name}"


def environment_of(matrix: Matrix, bad: End, candidate: Candidate, device: Device) -> Environment:
    """Return the changed release with a candidate: another environment, or its image with other variables.

    Args:
        matrix: has the changed release.
        bad: the changed release.
        candidate: what differs from it.
        device: whose variant is measured.
    """
    environment = bad.environment
    env = with_variables(environment.env, candidate.variables)
    if not candidate.is_built:
        return environment.model_copy(update={"env": env, "extends": matrix.image_of(bad.name), "add": ()})
    variant = environment.variant(device)
    assert variant is not None
    pinned = set(map(package_name, candidate.pins))
    others = (text for text in variant.requirements if package_name(text) not in pinned)
    changes = {"lock": None, "follow": None, "requirements": (*others, *candidate.pins)}
    update: dict[str, object] = {"env": env, "extends": None, "add": ()}
    if environment.variants:
        update["variants"] = {device: variant.model_copy(update=changes)}
    else:
        update |= changes
    changed = environment.model_copy(update=update)
    return with_python(changed, candidate.python) if candidate.python else changed


def _id(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
