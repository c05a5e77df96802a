"""The versions of a package next to the framework, as candidates of a search; cuDNN is one such package."""

import difflib
import re

from packaging.utils import canonicalize_name

from runner.backends.lock_file import read_lock
from runner.core.errors import Problem, ProvisionError, UsageError
from runner.releases.candidates import PACKAGES, ReleaseCandidate, in_between, templates, version_key
from runner.releases.named import parse_named
from runner.releases.named_environments import ReleaseFinder
from runner.releases.package_versions import lock_of, with_package
from runner.search.bisect.axis import SearchAxis, refuse_no_version
from runner.search.bisect.state import CandidateEntry, Question

CUDNN = "cudnn"
"""The axis that stands for the package of cuDNN in the lock of the environment, whose name has the version of CUDA."""


class PackageAxis(SearchAxis):
    """The version of one package varies; the framework and Python stay."""

    __slots__ = ()

    def candidates(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        """Return the versions of the package between two, with a wheel for the Python of the environment.

        Raises:
            UsageError: an end is no such version, or the environment is not made of packages.
        """
        if question.axis == CUDNN:
            self.needs_gpu(CUDNN)
        template = self._template(question.environment)
        package, python = self._package(question.axis, template), template.environment.python or ""
        names, problem = self.listed(package, python, "")
        if problem:
            raise UsageError(Problem(f"the versions of {package} cannot be listed: {problem}"))
        lock = lock_of(template, self.device, self.folder, self.locks)
        known = {name: with_package(template, package, name, self.device, lock) for name in names}
        by_key = {version_key(name): candidate for name, candidate in known.items()}
        ends = []
        for end in (question.good, question.bad):
            if version_key(end) not in by_key:
                message = f"the index has no wheel of {package} {end} for Python {python}"
                near = difflib.get_close_matches(end, names, 2, 0.3) or names[:1]
                raise UsageError(Problem(message, hint=f"did you mean {' or '.join(near)}?"))
            ends.append(by_key[version_key(end)])
        return in_between([*known.values()], *ends)

    def stored(self, question: Question, entry: CandidateEntry) -> ReleaseCandidate:
        """Return a candidate of an unfinished search; raises UsageError if the matrix has its environment no more."""
        refuse_no_version(entry["release"])
        template = self._template(question.environment)
        package = self._package(question.axis, template)
        lock = lock_of(template, self.device, self.folder, self.locks)
        return with_package(template, package, entry["release"], self.device, lock)

    def _template(self, name: str) -> ReleaseCandidate:
        """Return the environment next to which the package varies: of the matrix, or of a release.

        Raises:
            UsageError: there is none, or it is an image.
            NothingSelectedError: the index has no such release.
        """
        named = None if name in self.matrix.environments else parse_named(name)
        if named is None:
            candidate = self.environment(name)
        else:
            finder = ReleaseFinder(matrix=self.matrix, folder=self.folder, device=self.device, versions=self.versions)
            candidate = finder.find(named)
        if not templates([candidate], self.device):
            message = f"{name} is an image, so that no other version of a package can be installed"
            raise UsageError(Problem(message, hint="name an environment that is made of packages"))
        return candidate

    def _package(self, axis: str, template: ReleaseCandidate) -> str:
        """Return the name of the package on the index.

        Raises:
            UsageError: it is the framework, or the environment has no package of cuDNN.
        """
        if axis != CUDNN:
            framework = template.environment.framework
            if axis in {str(canonicalize_name(name)) for name in PACKAGES.get(framework, ())}:
                message = f"{axis} is the framework of {template.name}"
                raise UsageError(Problem(message, hint="leave --axis out: its releases are what varies then"))
            return axis
        lock = lock_of(template, self.device, self.folder, self.locks)
        try:
            packages = read_lock(lock)[1].packages if lock else ()
        except ProvisionError:
            packages = ()
        for package in packages:
            if re.fullmatch(r"nvidia-cudnn-cu\d+", canonicalize_name(package.name)):
                return package.name
        message = f"the lock of {template.name} has no package of cuDNN, so that another cannot be installed"
        raise UsageError(Problem(message, hint="cuDNN is part of its image or of its wheel: bisect the axis release"))
