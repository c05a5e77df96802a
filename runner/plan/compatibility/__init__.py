"""What runs on what: GPU architecture x driver x CUDA x cuDNN x what a build holds x Python.

The facts are CSV files beside this module, each row with its source; the rules are pure functions on them; and for
each environment that cannot, the nearest that can is named.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from runner.catalog.hardware.facts import Build
from runner.catalog.hardware.versions import release
from runner.core.model import Gpu, Request, Skip
from runner.matrix import Environment, Matrix
from runner.plan.compatibility import rules
from runner.plan.compatibility.alternatives import nearest_build, nearest_environment
from runner.plan.compatibility.builds import build_of, setting
from runner.plan.compatibility.rules import RUNS, Setting, Verdict

__all__ = ["Build", "Judgement", "Setting", "Verdict", "judge", "judgements", "release"]

NO_BUILD = "no CUDA build is declared for this environment; measure it with --device cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What an environment does on a GPU.

    Attributes:
        build: what is known of its build, None where nothing is.
        setting: what it is put into; None where it has no CUDA build.
        verdict: what it does there.
        vendor: the same for implementations that call cuDNN.
        nearest: what would run there instead: an environment of the matrix, then a known build; empty where it runs.
    """

    build: Build | None
    setting: Setting | None
    verdict: Verdict
    vendor: Verdict
    nearest: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """True where all of it runs, and by code that was made for the GPU."""
        return self.verdict.word == "runs" == self.vendor.word

    @property
    def runs_by_default(self) -> bool:
        """True where all of it runs without ``--allow-jit``, natively or by PTX that was built for this GPU."""
        return all(verdict.word == "runs" or verdict.meant for verdict in (self.verdict, self.vendor))

    def skip(self, kind: str, *, allow_jit: bool) -> Skip | None:
        """Return why implementations of a kind are not run there, None where they are."""
        verdict = self._of(kind)
        if verdict.word == "cannot":
            return Skip(verdict.code, verdict.reason, verdict.source, self.nearest)
        if verdict.word == "jit" and not verdict.meant and not allow_jit:
            reason = f"{verdict.reason}; it would run by PTX JIT, whose first call is slow: --allow-jit lets it"
            return Skip("arch", reason, verdict.source, self.nearest)
        return None

    def jit(self, kind: str) -> str:
        """Return how implementations of a kind run by compiling PTX, in a sentence; empty where they do not."""
        verdict = self._of(kind)
        return f"runs by PTX JIT (first call is slow): {verdict.reason}" if verdict.word == "jit" else ""

    def _of(self, kind: str) -> Verdict:
        return self.vendor if kind == "vendor" else self.verdict


def judgements(matrix: Matrix, request: Request, gpu: Gpu, lost: Collection[str] = ()) -> Mapping[str, Judgement]:
    """Return what environments do on a GPU, each with the nearest that runs where it does not.

    Args:
        matrix: the checked matrix, of which any environment may be the nearest.
        request: names the environments, the backend, and the machine's C library.
        gpu: the GPU with its driver.
        lost: environments that cannot be had, for another reason.
    """
    judged = {
        name: judge(environment, gpu, request.backend, request.glibc)
        for name, environment in matrix.environments.items()
    }
    able = {name: judgement for name, judgement in judged.items() if judgement.runs_by_default and name not in lost}
    return {
        name: judged[name]
        if judged[name].runs
        else replace(judged[name], nearest=_nearest(matrix, name, able, judged[name]))
        for name in request.environments
    }


def judge(environment: Environment, gpu: Gpu, backend: str = "docker", glibc: str | None = None) -> Judgement:
    """Return what an environment does on a GPU; see ``judgements``."""
    variant = environment.variant("cuda")
    if variant is None or variant.cuda is None:
        none = Verdict("cannot", "needs-gpu", NO_BUILD, "the matrix")
        return Judgement(build=None, setting=None, verdict=none, vendor=none)
    build, target = build_of(environment, variant), setting(environment, variant, gpu, backend, glibc)
    verdict = rules.judge(build, target)
    vendor = verdict if verdict.word == "cannot" else rules.by_cudnn(target) or verdict
    return Judgement(build=build, setting=target, verdict=verdict, vendor=vendor)


def _nearest(matrix: Matrix, name: str, able: Mapping[str, Judgement], judged: Judgement) -> tuple[str, ...]:
    environment = nearest_environment(matrix, name, able)
    environments = (environment,) if environment else ()
    build, framework = judged.build, matrix.environments[name].framework
    if build is None or judged.setting is None or judged.verdict == RUNS or build.framework != framework:
        # Another build helps neither where only cuDNN is in the way, nor where the framework stands on another one.
        return environments
    other = nearest_build(build, judged.setting)
    same = environment is not None and other == able[environment].build
    return environments if other is None or same else (*environments, other.requirement or other.name)
