"""Is this release of a framework faster or slower than that one, on this device, for these networks?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.core.paths import find_matrix
from runner.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from runner.session.notebook import ComparisonResult, RunResult

__all__ = ["__version__", "compare", "compare_models", "load_run", "load_samples"]


def load_samples(path: str | Path) -> "DataFrame":
    """Return every sample of a run as a tidy table, one row for each measured iteration.

    Args:
        path: a run folder, a reports folder (its newest run), or a file that ``runner export`` wrote.

    Returns:
        The columns run, cell, environment, framework, release, implementation, workload, case, phase, precision,
        backend, device, round, iteration, seconds, disturbed (true for rounds that other programs disturbed and that
        were measured again: they do not count).

    Raises:
        RecordError: the run cannot be read, or was written by a newer program.
    """
    from runner.analysis.dataset import load_samples as load

    return load(Path(path))


def load_run(
    path: str | Path = "reports", *, reports: str | Path = "reports", matrix: str | Path = "matrix.yaml"
) -> "RunResult":
    """Return a stored run as pandas frames, with its comparisons, its answer and a chart that a notebook shows.

    Args:
        path: a run folder, a reports folder (its newest run), or the id of a run in ``reports``.
        reports: the folder that holds the runs.
        matrix: the matrix file, for its margin: the change that counts as none. It may be missing.

    Returns:
        ``samples``, ``rounds`` and ``failures`` as frames, ``table`` and ``metrics`` with all comparisons, ``chart``,
        ``answer`` and ``grade``.

    Raises:
        UsageError: there is no such run.
        RecordError: the run cannot be read, or was written by a newer program.
    """
    from runner.session.notebook import load_run as load

    return load(path, Path(reports), find_matrix(Path(matrix)))


def compare(
    base: str,
    *others: str,
    run: str | None = None,
    best: bool = False,
    fail_on: str = "",
    reports: str | Path = "reports",
    matrix: str | Path = "matrix.yaml",
) -> "ComparisonResult":
    """Compare environments by their stored results, as ``runner compare`` does.

    Args:
        base: the environment, or ``environment@run``, that the others are compared with.
        others: environments, selectors, or published figures such as ``published:braun2018/torch-0.4``.
        run: compare in this run; by default in the newest that has both sides.
        best: compare the fastest implementation of each side.
        fail_on: conditions as ``--fail-on`` takes them, ``"slower:5%,undecided"``; the result's ``gate.passed`` says
            whether no test breaks them, and ``gate_message`` which ones do.
        reports: the folder that holds the runs.
        matrix: the matrix file, for its margin and its environments. It may be missing.

    Returns:
        ``table``, a frame with a row for each test, ``metrics``, one about memory and the other metrics, and ``chart``,
        which a notebook shows.

    Raises:
        UsageError: there is no such environment or run.
        RunnerError: nothing can be compared.
    """
    from runner.session.notebook import compare as compare_sides

    sides, folder, file = (base, *others), Path(reports), find_matrix(Path(matrix))
    return compare_sides(sides, folder, file, run=run, best=best, fail_on=fail_on)


def compare_models(  # noqa: PLR0913  all but the first three are keywords
    model: str | Path,
    base: str,
    *others: str,
    cases: "Sequence[str] | None" = None,
    build: bool = False,
    fail_on: str = "",
    reports: str | Path = "reports",
    matrix: str | Path = "matrix.yaml",
    **options: Any,  # noqa: ANN401 - each option has its type
) -> "ComparisonResult":
    """Measure a network in several environments and compare them, as ``runner run --model`` and ``compare`` do.

    Progress goes to stderr, and the run is stored in ``reports`` with its report, and in the history.

    Args:
        model: the network as ``--model`` names it, ``"nets.py:UNet"`` with ``input=["1x3x64x64"]``, or a model file.
        base: the environment that the others are compared with.
        others: the other environments.
        cases: names in the file's ``CASES``; all of them by default.
        build: build environments that are not built yet; without it they are an error.
        fail_on: conditions as for ``runner.compare``.
        reports: the folder that holds the runs.
        matrix: the matrix file.
        options: the other options of ``runner run``, such as ``rounds=5``, ``precision=["fp32"]`` or ``device="cpu"``.

    Returns:
        ``table``, a frame with a row for each case, phase and precision, ``metrics``, one about memory and the other
        metrics, and ``chart``, which a notebook shows.

    Raises:
        MatrixError: the model file or the matrix has mistakes.
        UsageError: there is no such environment, or it is not built.
        NothingSelectedError: no class of the file fits the environments, or there is no such case.
        RunnerError: nothing was measured that can be compared.
    """
    from runner.session.notebook import compare_models as measure
    from runner.session.options import Options

    given = Options(model=[str(model)], reports=Path(reports), matrix=Path(matrix), **options)
    return measure(given, (base, *others), cases, build=build, fail_on=fail_on)
