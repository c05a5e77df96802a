"""The CUDA builds that the matrix has of an environment, as candidates of a search."""

from runner.core.errors import Problem, UsageError
from runner.matrix.sources import cuda_key
from runner.releases.candidates import ReleaseCandidate, in_between
from runner.search.bisect.axis import SearchAxis
from runner.search.bisect.state import CandidateEntry, Question


class CudaAxis(SearchAxis):
    """The version of CUDA varies."""

    __slots__ = ()

    def candidates(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        """Return the builds between two versions of CUDA."""
        known = self._variants(question)
        ends = []
        for name in (question.good, question.bad):
            same = [each for each in known if each.release == name]
            if not same:
                versions = ", ".join(each.release for each in known) or "none"
                message = f"{question.environment} has no build for CUDA {name}"
                raise UsageError(Problem(message, hint=f"the matrix has CUDA {versions}"))
            ends += same[:1]
        return in_between(known, *ends)

    def stored(self, question: Question, entry: CandidateEntry) -> ReleaseCandidate:
        """Return a candidate of an unfinished search; raises UsageError if the matrix has it no more."""
        variants = {each.name: each for each in self._variants(question)}
        if entry["name"] not in variants:
            raise UsageError(Problem(f"{entry['name']} is not in the matrix any more"))
        return variants[entry["name"]]

    def _variants(self, question: Question) -> list[ReleaseCandidate]:
        """Return the CUDA builds of the environment of a question, each as an environment.

        Raises:
            UsageError: this measures on a CPU, or the environment has none.
        """
        self.needs_gpu("cuda")
        candidate = self.environment(question.environment)
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
