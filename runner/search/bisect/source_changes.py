"""The revisions of the source that the releases of a search were made from, and what changed between two of them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runner.analysis.releases import framework_name
from runner.catalog.source_repositories import compare_link, revision, short
from runner.releases.candidates import COMPANIONS, ReleaseCandidate
from runner.search.bisect.package_ends import AXES
from runner.search.bisect.state import SearchStep

WITHOUT_SOURCE = frozenset({"cuda", "cudnn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """What changed in the source of a package.

    Attributes:
        package: its name, or that of a framework.
        before: the revision of the last release without the change; ``after`` of the first with it.
        compare: the address of a page with all changes between the two.
    """

    package: str
    before: str
    after: str
    compare: str

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The two revisions and the page."""
        name = framework_name(self.package)
        return f"changes in the source of {name}, {short(self.before)} to {short(self.after)}: {self.compare}"


def revisions_of(candidate: ReleaseCandidate, axis: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return package -> the revision that a candidate was made from, of what varies.

    Args:
        candidate: a release.
        axis: what varies.
        facts: what its run recorded of its environment.
    """
    if axis in WITHOUT_SOURCE:
        return {}
    if axis not in AXES:
        versions, recorded = {axis: candidate.release}, {}
    else:
        framework = candidate.environment.framework
        companions = {name: facts[name] for name in COMPANIONS.get(framework, ()) if name in facts}
        versions = {framework: facts.get("version") or candidate.release, **companions}
        recorded = {
            framework: facts.get("source_revision"),
            **{name: facts.get(f"{name}_revision") for name in companions},
        }
    revisions = {name: revision(name, str(each), str(recorded.get(name))) for name, each in versions.items()}
    return {name: each for name, each in revisions.items() if each}


def source_changes(steps: Iterable[SearchStep], before: str, after: str) -> list[SourceChange]:
    """Return what changed between two candidates, given by their names, in each package with a known repository."""
    by_name: dict[str, Mapping[str, str]] = {}
    for step in steps:
        by_name |= {step.base: step.base_revisions or by_name.get(step.base, {})}
        by_name |= {step.other: step.revisions or by_name.get(step.other, {})}
    old, new = by_name.get(before, {}), by_name.get(after, {})
    links = {package: compare_link(package, old[package], new[package]) for package in old if package in new}
    return [
        SourceChange(package=package, before=old[package], after=new[package], compare=link)
        for package, link in links.items()
        if link
    ]
