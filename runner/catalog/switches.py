"""Known switches of the frameworks and their libraries that may take a change back: environment variables.

``switches.csv`` has a row for each switch: ``name``, an id; ``frameworks`` that read it, separated by spaces;
``releases`` of the framework that have it (PEP 440), empty for all; ``device`` (``cpu``, ``cuda`` or ``any``);
``needs``, a flag of the processor without which it does nothing, empty for none; its ``variables``, ``A=1; B=2``; the
``sentence`` that says what it does; and its ``source``.
"""

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

CSV_FILE = Path(__file__).parent / "switches.csv"
FLAG_LISTS = frozenset({"XLA_FLAGS", "TF_XLA_FLAGS"})
"""Variables that hold several flags with spaces between them; a flag is added to those that are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A row of ``switches.csv``, see there."""

    name: str
    frameworks: tuple[str, ...]
    releases: str
    device: str
    needs: str
    variables: Mapping[str, str]
    sentence: str
    source: str

    def applies(self, framework: str, release: str, device: str, flags: Collection[str]) -> bool:
        """Return whether a release of a framework has the switch, and the device and the processor know its effect.

        Args:
            framework: as in matrix.yaml.
            release: its version; one that is no version has every switch.
            device: ``cpu`` or ``cuda``.
            flags: of the processor.
        """
        if framework not in self.frameworks or self.device not in ("any", device):
            return False
        return (not self.needs or self.needs in flags) and self._has(release)

    def _has(self, release: str) -> bool:
        try:
            version = Version(release)
        except InvalidVersion:
            return True
        return SpecifierSet(self.releases).contains(version, prereleases=True)


def applying(framework: str, release: str, device: str, flags: Collection[str]) -> Iterator[Switch]:
    """Yield the switches that apply, in the order of the file; see ``Switch.applies``."""
    return (switch for switch in switches() if switch.applies(framework, release, device, flags))


def with_variables(variables: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return variables with others; a flag is added to a list of flags.

    >>> with_variables({"XLA_FLAGS": "--a=1"}, {"XLA_FLAGS": "--b=2"}), with_variables({"A": "1"}, {"A": "2"})
    ({'XLA_FLAGS': '--a=1 --b=2'}, {'A': '2'})
    """
    together = dict(variables)
    for name, value in added.items():
        before = variables.get(name, "") if name in FLAG_LISTS else ""
        together[name] = before if value in before.split() else f"{before} {value}".strip()
    return together


@cache
def switches() -> tuple[Switch, ...]:
    """Return all switches."""
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        return tuple(map(_switch, csv.DictReader(stream)))


def _switch(row: Mapping[str, str]) -> Switch:
    assignments = (text.partition("=") for text in row["variables"].split("; "))
    return Switch(
        **{name: row[name] for name in ("name", "releases", "device", "needs", "sentence", "source")},
        frameworks=tuple(row["frameworks"].split()),
        variables={name: value for name, _, value in assignments},
    )
