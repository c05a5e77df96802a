"""One stable colour for each release: a hue for the framework, darker the newer the release."""

from collections.abc import Mapping
from typing import NamedTuple

from runner.analysis.releases import EnvironmentRelease
from runner.core.model.cells import is_twin

HUES = {"torch": 14, "torch7": 330, "tensorflow": 38, "keras": 350, "theano": 265, "jax": 190, "numpy": 150}
OTHER_HUE = 90
LIGHT = (58, 34)
"""Lightness in per cent on a white page, of the oldest release and of the newest: at least 3:1 against the page."""
DARK = (45, 72)
"""The same on a dark page."""


class Colour(NamedTuple):
    """A colour in CSS, on a light page and on a dark one."""

    light: str
    dark: str


def colours(releases: Mapping[str, EnvironmentRelease]) -> dict[str, Colour]:
    """Return environment -> its colour. It depends on the releases of its framework in the run, in their order."""
    by_framework: dict[str, list[str]] = {}
    for name, release in releases.items():
        if not is_twin(name):
            by_framework.setdefault(release.framework, []).append(name)
    return {
        name: _colour(framework, index / max(len(names) - 1, 1))
        for framework, names in by_framework.items()
        for index, name in enumerate(names)
    }


def _colour(framework: str, age: float) -> Colour:
    hue = HUES.get(framework, OTHER_HUE)
    light, dark = (round(oldest + age * (newest - oldest)) for oldest, newest in (LIGHT, DARK))
    return Colour(f"hsl({hue} 70% {light}%)", f"hsl({hue} 70% {dark}%)")
