"""The releases of a run's environments, with the names that people call them by."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from runner.analysis.model import Dataset
from runner.core.model.cells import without_control

FRAMEWORKS = {
    "torch": "PyTorch",
    "torch7": "Torch7",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "theano": "Theano",
    "jax": "JAX",
    "numpy": "NumPy",
}
"""Framework -> its name in text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRelease:
    """A release of a framework, as an environment has it.

    Attributes:
        environment: the id.
        framework: as in matrix.yaml; empty if it is not known.
        version: without a local part such as ``+cu118``; the id if it is not known.
        backend: the framework that Keras runs on, with its version; empty for other frameworks.
        name: framework, version and backend; if another environment has the same, with its id in parentheses, which is
            what was named beside the release in ``numpy-2.3.5-numba-0.65.0``.
        short: the name without its framework.
    """

    environment: str
    framework: str
    version: str
    backend: str
    name: str
    short: str


def releases(dataset: Dataset) -> dict[str, EnvironmentRelease]:
    """Return environment -> its release, in the order of the plan; an A/A control has that of its environment."""
    frameworks = {planned.cell.environment: planned.framework for planned in dataset.plan if planned.framework}
    rounds = dataset.rounds
    frameworks |= dict(zip(rounds["environment"].tolist(), rounds["framework"].tolist(), strict=True))
    names = dict.fromkeys([*frameworks, *dataset.environments])
    by_id = {name: _release(name, frameworks.get(name, ""), dataset.environments.get(name, {})) for name in names}
    uses = Counter(release.name for name, release in by_id.items() if without_control(name) == name)
    return {name: _distinct(release) if uses[release.name] > 1 else release for name, release in by_id.items()}


def framework_name(framework: str) -> str:
    """Return the name of a framework in text."""
    return FRAMEWORKS.get(framework, framework)


def _release(environment: str, framework: str, facts: Mapping[str, Any]) -> EnvironmentRelease:
    version = _public(facts.get("version") or facts.get("release"))
    backend = ""
    if framework == "keras" and facts.get("backend"):
        backend = f"{framework_name(str(facts['backend']))} {_public(facts.get('backend_version'))}".strip()
    short = f"{version} on {backend}" if backend else version
    name = f"{framework_name(framework)} {short}".strip() if version and framework else environment
    return EnvironmentRelease(
        environment=environment,
        framework=framework,
        version=version or environment,
        backend=backend,
        name=name,
        short=short or environment,
    )


def _distinct(release: EnvironmentRelease) -> EnvironmentRelease:
    mark = f" ({release.environment.removeprefix(f'{release.framework}-{release.version}-')})"
    return replace(release, name=release.name + mark, short=release.short + mark)


def _public(version: object) -> str:
    """Return a version without its local part."""
    return str(version or "").split("+", maxsplit=1)[0]
