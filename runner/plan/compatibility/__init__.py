"""Decide which environments run on which GPU, and suggest an alternative to those that do not.

What decides: the GPU's architecture, its driver, the CUDA and cuDNN of a build, the GPU code in it, and Python. The
facts are CSV files in ``runner.catalog.hardware``, each row with its source. ``builds`` finds what is known of an
environment's build, ``rules`` has the rules as pure functions, and ``alternatives`` finds the nearest environment and
build that run.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from runner.catalog.hardware.builds import Build
from runner.core.model import Gpu, Request, Skip
from runner.matrix import Environment, Matrix, Variant
from runner.plan.compatibility import rules
from runner.plan.compatibility.alternatives import nearest_build, nearest_environment
from runner.plan.compatibility.builds import build_of, target_of
from runner.plan.compatibility.rules import RUNS, BuildTarget, Verdict, precision_refusal

__all__ = ["Build", "Judgement", "Target", "Verdict", "judge", "judge_variant", "judgements", "precision_refusal"]

NO_BUILD = "the matrix has no CUDA build of this environment; measure it with --device cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether an environment runs on a GPU.

    Attributes:
        build: the known facts of its build; None if nothing is known.
        target: the machine and the image that it would run in; None if it has no CUDA build.
        verdict: whether implementations run that do not call cuDNN.
        vendor: whether implementations run that call cuDNN.
        nearest: what would run instead: an environment of the matrix, then a known build; empty if it runs.
        cudnn_warning: what will probably fail of implementations that call cuDNN, in a sentence; empty if nothing.
    """

    build: Build | None
    target: BuildTarget | None
    verdict: Verdict
    vendor: Verdict
    nearest: tuple[str, ...] = ()
    cudnn_warning: str = ""

    @property
    def runs(self) -> bool:
        """True if all implementations run, with native code for the GPU."""
        return self.verdict.outcome == "runs" == self.vendor.outcome

    @property
    def runs_by_default(self) -> bool:
        """True if all implementations run without ``--allow-jit``: natively, or by PTX made for just this GPU."""
        return all(verdict.outcome == "runs" or verdict.made_for_gpu for verdict in (self.verdict, self.vendor))

    def skip(self, *, uses_cudnn: bool, allow_jit: bool) -> Skip | None:
        """Return why implementations that call cuDNN, or do not, do not run; None if they do."""
        verdict = self._verdict(uses_cudnn=uses_cudnn)
        if verdict.outcome == "cannot":
            return Skip(verdict.code, verdict.reason, verdict.source, self.nearest)
        if verdict.outcome == "jit" and not verdict.made_for_gpu and not allow_jit:
            reason = f"{verdict.reason}; to run it by PTX JIT, with a slow first call, pass --allow-jit"
            return Skip("arch", reason, verdict.source, self.nearest)
        return None

    def jit(self, *, uses_cudnn: bool) -> str:
        """Return a sentence on why implementations run by compiling PTX; empty if they do not need it."""
        verdict = self._verdict(uses_cudnn=uses_cudnn)
        if verdict.outcome != "jit":
            return ""
        warning = f"; {self.cudnn_warning}" if uses_cudnn and self.cudnn_warning else ""
        return f"runs by PTX JIT (first call is slow): {verdict.reason}{warning}"

    def _verdict(self, *, uses_cudnn: bool) -> Verdict:
        return self.vendor if uses_cudnn else self.verdict


def judgements(
    matrix: Matrix, request: Request, gpu: Gpu, unavailable: Collection[str] = ()
) -> Mapping[str, Judgement]:
    """Return environment -> whether it runs on a GPU, for the environments of a request.

    Those that do not run, or only by JIT, have the nearest alternatives.

    Args:
        matrix: the checked matrix; any of its environments may be an alternative.
        request: has the environments, the backend and the machine's C library.
        gpu: the GPU with its driver.
        unavailable: environments that cannot be built for another reason, and are no alternative.
    """
    judged = {
        name: judge(environment, gpu, request.backend, request.glibc)
        for name, environment in matrix.environments.items()
    }
    runnable = {
        name: judgement for name, judgement in judged.items() if judgement.runs_by_default and name not in unavailable
    }
    return {
        name: judged[name]
        if judged[name].runs
        else replace(judged[name], nearest=_nearest(matrix, name, runnable, judged[name]))
        for name in request.environments
    }


def judge(environment: Environment, gpu: Gpu, backend: str = "docker", glibc: str | None = None) -> Judgement:
    """Return whether an environment runs on a GPU with its newest CUDA, without alternatives.

    Args:
        environment: the environment.
        gpu: the GPU with its driver.
        backend: ``docker`` or ``venv``.
        glibc: the version of the machine's C library, which counts for a venv; None if unknown.
    """
    variant = environment.variant("cuda")
    if variant is None or variant.cuda is None:
        no_build = Verdict("cannot", "needs-gpu", NO_BUILD, "the matrix")
        return Judgement(build=None, target=None, verdict=no_build, vendor=no_build)
    return judge_variant(environment, variant, gpu, backend, glibc)


def judge_variant(environment: Environment, variant: Variant, gpu: Gpu, backend: str, glibc: str | None) -> Judgement:
    """Return whether a variant of an environment, which names its CUDA version, runs on a GPU; see ``judge``."""
    build, target = build_of(environment, variant), target_of(environment, variant, gpu, backend, glibc)
    verdict = rules.judge(build, target)
    vendor = verdict if verdict.outcome == "cannot" else rules.cudnn_refusal(target) or verdict
    warning = rules.cudnn_warning(target) if vendor.outcome == "jit" else ""
    return Judgement(build=build, target=target, verdict=verdict, vendor=vendor, cudnn_warning=warning)


def _nearest(matrix: Matrix, name: str, runnable: Mapping[str, Judgement], judgement: Judgement) -> tuple[str, ...]:
    """Return the nearest environment that runs, and the nearest known build unless that environment has it."""
    environment = nearest_environment(matrix, name, runnable)
    environments = (environment,) if environment else ()
    build, framework = judgement.build, matrix.environments[name].framework
    if build is None or judgement.target is None or judgement.verdict == RUNS or build.framework != framework:
        # Another build does not help if only cuDNN is the obstacle, or if the framework runs on top of another one.
        return environments
    other = nearest_build(build, judgement.target)
    same = environment is not None and other == runnable[environment].build
    return environments if other is None or same else (*environments, other.requirement or other.name)
