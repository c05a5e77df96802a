"""The candidates of a question: from the good end to the bad one, on the axis that varies."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from runner.backends.lock_file import read_lock
from runner.core.bounds import MAX_SHOWN
from runner.core.errors import OutageError, Problem, ProvisionError, UsageError
from runner.core.model import Device
from runner.core.text import printable
from runner.matrix import Matrix
from runner.matrix.select import release_key
from runner.matrix.sources import cuda_key
from runner.releases import candidates as of
from runner.releases import nightly_builds
from runner.releases.candidates import ReleaseCandidate, in_between, made_from, package_of
from runner.releases.index import Lister
from runner.releases.named import parse_named
from runner.releases.nightly_builds import DEFAULT
from runner.search.bisect.model_cell import framework_of
from runner.search.bisect.state import CandidateEntry, Question

MOST_CANDIDATES = 500
"""Candidates beyond which a search is refused: 500 releases take nine halvings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Finds candidates.

    Attributes:
        matrix: the checked matrix, with all variants.
        folder: the folder of the matrix file.
        device: ``cpu`` or ``cuda``.
        versions: lists the versions of a package, see ``releases.index.versions``.
        notes: takes sentences about what is not available.
    """

    matrix: Matrix
    folder: Path
    device: Device
    versions: Lister
    notes: list[str]

    def candidates(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        """Return the candidates of a question, both ends included.

        Raises:
            UsageError: an end does not exist, or the axis is not available on this machine.
        """
        if question.axis == "cuda":
            chosen = self._cuda(question)
        elif question.axis == "cudnn":
            chosen = self._cudnn(question)
        else:
            chosen = self._releases(question, nightly=question.axis == "nightly")
        if len(chosen) > MOST_CANDIDATES:
            message = f"there are {len(chosen)} candidates between {question.good} and {question.bad}"
            raise UsageError(Problem(message, hint=f"name ends with at most {MOST_CANDIDATES} between them"))
        return chosen

    def stored(self, question: Question, entries: Sequence[CandidateEntry]) -> tuple[ReleaseCandidate, ...]:
        """Return the candidates of an unfinished search; the index is not asked again.

        Raises:
            UsageError: the matrix no longer has one of them, or its template.
        """
        return tuple(self._of_entry(question, entry) for entry in entries)

    def _of_entry(self, question: Question, entry: CandidateEntry) -> ReleaseCandidate:
        template = self._candidate(entry["template"] or entry["name"].partition(":")[0])
        if question.axis == "cuda":
            variants = {each.name: each for each in self._cuda_variants(question)}
            if entry["name"] not in variants:
                raise UsageError(Problem(f"{entry['name']} is not in the matrix any more"))
            return variants[entry["name"]]
        if not entry["template"]:
            return replace(template, release=entry["release"])
        if not _is_version(entry["release"]):  # it becomes a requirement
            raise UsageError(Problem(f"{printable(entry['release'], MAX_SHOWN)!r} in the stored search is no version"))
        if question.axis == "cudnn":
            return made_from(template, self._cudnn_package(template), entry["release"], self.device)
        return self._made(question, template, entry["release"])

    def _candidate(self, name: str) -> ReleaseCandidate:
        environment = self.matrix.environments.get(name)
        if environment is None or environment.variant(self.device) is None:
            why = "is not in the matrix" if environment is None else f"has no variant for {self.device}"
            hint = "`runner list environments` lists them"
            raise UsageError(Problem(f"the environment {name!r} {why}", hint=hint))
        release = of.exact_release(environment, self.device, self.folder)
        return ReleaseCandidate(name=name, release=release, source="matrix", environment=environment)

    # --- releases and nightly builds ---

    def _releases(self, question: Question, *, nightly: bool) -> tuple[ReleaseCandidate, ...]:
        framework = framework_of(self.matrix, _named(question), question.cell.split("/")[1])
        known = [*of.of_matrix(self.matrix, framework, self.device, self.folder)]
        of_index = [*self._of_index(question, known, nightly=nightly)]
        complete = [each for each in known if not self._lacking(question, each) or self._is_image(each)]
        ends = [self._end(name, [*complete, *of_index, *known]) for name in (question.good, question.bad)]
        between = of_index if nightly else [*complete, *of_index]
        return in_between(between, *ends)

    def _lacking(self, question: Question, other: ReleaseCandidate) -> tuple[str, ...]:
        """Return the packages of the ends that another environment of the matrix lacks."""
        named = [name for name in dict.fromkeys(_named(question)) if name in self.matrix.environments]
        ends = [self._candidate(name) for name in named if self.matrix.environments[name].variant(self.device)]
        return of.lacking_packages(ends, other, self.device)

    def _is_image(self, candidate: ReleaseCandidate) -> bool:
        variant = candidate.environment.variant(self.device)
        return variant is not None and variant.image is not None

    def _end(self, name: str, known: Sequence[ReleaseCandidate]) -> ReleaseCandidate:
        """Return the candidate of an end: an environment of the matrix, or a version.

        Raises:
            UsageError: there is none.
        """
        if name in self.matrix.environments:
            return self._candidate(name)
        named = parse_named(name)
        key = release_key(named.version if named else name)
        same = [each for each in known if key is not None and release_key(each.release) == key]
        if same:
            return same[0]
        hint = "name an environment of the matrix, or a release of the package index, such as torch==1.4.0 or 1.4.0"
        raise UsageError(Problem(f"there is no environment and no release {name!r}", hint=hint))

    def _of_index(
        self, question: Question, known: Sequence[ReleaseCandidate], *, nightly: bool
    ) -> Iterator[ReleaseCandidate]:
        """Yield the versions of the index, each made from the nearest template whose Python has a wheel of it.

        The ends come first: what they have beside the framework, the others may lack.
        """
        listed: dict[str, set[str]] = {}
        usable = of.templates(known, self.device)
        if not usable:
            self.notes.append("no environment of the matrix is made of packages: only those of the matrix are measured")
        axis = "nightly" if nightly else "release"
        for template in usable:
            pin, python = self._pin(template, axis), template.environment.python or ""
            names, problem = self._versions(
                pin.name, python, self._nightly_index(template) or DEFAULT if nightly else ""
            )
            listed[template.name] = {name for name in names if not nightly or release_key(name).is_devrelease}  # type: ignore[union-attr]  # pip lists versions
            if problem:
                kind = "nightly builds" if nightly else "releases"
                self.notes.append(f"{kind} of {pin.name} for Python {python} cannot be listed: {problem}")
        order = sorted({name for names in listed.values() for name in names}, key=of.version_key)  # type: ignore[arg-type]
        for version in order:
            near = sorted(
                usable, key=lambda each: (each.name not in _named(question), _distance(order, each.release, version))
            )
            template = next(each for each in near if version in listed[each.name])
            yield self._made(question, template, version)

    def _made(self, question: Question, template: ReleaseCandidate, version: str) -> ReleaseCandidate:
        """Return a version of the index that is made from a template, with the packages of the ends."""
        index, packages = "", self._lacking(question, template)
        if question.axis == "nightly":
            index = self._nightly_index(template)
        return made_from(template, self._pin(template, question.axis), version, self.device, index, packages)

    def _versions(self, package: str, python: str, nightly: str) -> tuple[tuple[str, ...], str]:
        """Return the versions of a package, and why there are none.

        Raises:
            OutageError: an index does not answer: a search without its releases would name a wider range.
        """
        try:
            return self.versions(package, python, nightly)
        except ProvisionError as error:
            hint = "try again later; with PIP_NO_INDEX=1, the environments of the matrix are the only candidates"
            raise OutageError(Problem(error.problems[0].message, hint=hint)) from error

    def _pin(self, template: ReleaseCandidate, axis: str) -> Requirement:
        variant = template.environment.variant(self.device)
        assert variant is not None
        pin = package_of(variant, template.environment.framework)
        return nightly_builds.packages_of(pin, "nightly" if axis == "nightly" else "release")[0]

    def _nightly_index(self, template: ReleaseCandidate) -> str:
        variant = template.environment.variant(self.device)
        assert variant is not None
        return nightly_builds.index_of(template.environment.framework, variant, self.device, "nightly")

    # --- CUDA and cuDNN ---

    def _cuda(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        known = self._cuda_variants(question)
        ends = []
        for name in (question.good, question.bad):
            same = [each for each in known if each.release == name]
            if not same:
                versions = ", ".join(each.release for each in known) or "none"
                message = f"{question.environment} has no build for CUDA {name}"
                raise UsageError(Problem(message, hint=f"the matrix has CUDA {versions}"))
            ends += same[:1]
        return in_between(known, *ends)

    def _cuda_variants(self, question: Question) -> list[ReleaseCandidate]:
        """Return the CUDA builds of the environment of a question, each as an environment.

        Raises:
            UsageError: this measures on a CPU, or the environment has none.
        """
        self._needs_gpu("cuda")
        candidate = self._candidate(question.environment)
        variants = candidate.environment.variants_for("cuda")
        return [
            ReleaseCandidate(
                name=f"{candidate.name}-cuda-{variant.cuda}",
                release=variant.cuda or "",
                source="matrix",
                environment=candidate.environment.model_copy(update={"variants": {"cuda": variant}}),
            )
            for variant in sorted(variants.values(), key=cuda_key)
        ]

    def _cudnn(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        self._needs_gpu("cudnn")
        template = self._candidate(question.environment)
        pin = self._cudnn_package(template)
        names, problem = self._versions(pin.name, template.environment.python or "", "")
        if problem:
            raise UsageError(Problem(f"the versions of {pin.name} cannot be listed: {problem}"))
        known = [made_from(template, pin, name, self.device) for name in names]
        ends = [self._end(name, known) for name in (question.good, question.bad)]
        return in_between(known, *ends)

    def _cudnn_package(self, template: ReleaseCandidate) -> Requirement:
        """Return the package of cuDNN in the lock of an environment.

        Raises:
            UsageError: it has none.
        """
        variant = template.environment.variant(self.device)
        try:
            packages = read_lock(self.folder / variant.lock)[1].packages if variant and variant.lock else ()
        except ProvisionError:
            packages = ()
        for package in packages:
            if re.fullmatch(r"nvidia-cudnn-cu\d+", canonicalize_name(package.name)):
                return Requirement(package.name)
        message = f"the lock of {template.name} has no package of cuDNN, so that another cannot be installed"
        raise UsageError(Problem(message, hint="cuDNN is part of its image or of its wheel: bisect the axis release"))

    def _needs_gpu(self, axis: str) -> None:
        if self.device != "cuda":
            message = f"the axis {axis} needs an NVIDIA GPU, and this search measures on the CPU"
            raise UsageError(Problem(message, hint="run it on a machine with a GPU, or bisect the axis release"))


def _named(question: Question) -> tuple[str, ...]:
    """Return the names that may be environments of the matrix: the ends, and the environment of the cell."""
    return question.good, question.bad, question.environment


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _distance(order: Sequence[str], release: str, version: str) -> int:
    """Return how many listed versions lie between a template's release and a version."""
    keys = [of.version_key(name) for name in order]
    low, high = sorted((of.version_key(release), of.version_key(version)))  # type: ignore[type-var]
    return sum(low < key <= high for key in keys)  # type: ignore[operator]
