"""Choose the CUDA variant of each environment for a GPU: the newest that the GPU and its driver run."""

from collections.abc import Mapping

from runner.core.model import Gpu
from runner.matrix import Environment, Matrix, Variant
from runner.plan.compatibility import Judgement, judge_variant


def choose_variants(
    matrix: Matrix, gpu: Gpu, backend: str = "docker", glibc: str | None = None
) -> tuple[Matrix, Mapping[str, str]]:
    """Return the matrix with one CUDA variant for each environment, and why it is not the newest where it is not.

    A variant is preferred if all of its implementations run, then if those run that do not call cuDNN, then if it runs
    by compiling PTX; of equal ones the newest CUDA is taken. If none runs, the newest stays, and says why. A venv
    cannot hold an image, so variants that are images are none of its candidates.

    Args:
        matrix: the checked matrix.
        gpu: the GPU with its driver.
        backend: ``docker`` or ``venv``.
        glibc: the version of the machine's C library, which counts for a venv; None if unknown.

    Returns:
        the matrix, and environment -> a sentence.
    """
    environments = dict(matrix.environments)
    reasons: dict[str, str] = {}
    for name, environment in matrix.environments.items():
        variants = _candidates(environment, backend)
        if not variants:
            continue
        judged = {key: judge_variant(environment, each, gpu, backend, glibc) for key, each in variants.items()}
        newest = next(iter(variants))
        chosen = max(judged, key=lambda key: _suitability(judged[key]))  # the first of equal ones, which is the newest
        environments[name] = environment.with_cuda_variant(chosen)
        if chosen != newest:
            reasons[name] = _reason(name, variants[chosen], variants[newest], judged[newest])
    return matrix.model_copy(update={"environments": environments}), reasons


def _candidates(environment: Environment, backend: str) -> Mapping[str, Variant]:
    """Return the CUDA variants to choose from; none where there is no choice."""
    variants = environment.variants_for("cuda") if environment.variants else {}
    if len(variants) < 2:
        return {}
    return {name: each for name, each in variants.items() if backend == "docker" or each.image is None}


def _suitability(judgement: Judgement) -> int:
    if judgement.runs:
        return 4
    if judgement.runs_by_default:
        return 3
    return {"runs": 2, "jit": 1, "cannot": 0}[judgement.verdict.outcome]


def _reason(environment: str, chosen: Variant, newest: Variant, judgement: Judgement) -> str:
    why = judgement.verdict.reason or judgement.vendor.reason
    return f"{environment}: the build with CUDA {chosen.cuda}, not {newest.cuda}: {why}"
