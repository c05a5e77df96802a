"""Does a user's program take as long as we say? Each kind of call in a plain script, and as the runner measures it.

``python -m benchmarks.plain_scripts numpy-1.16 numpy-2.x`` takes about a minute for each environment, needs a Docker
engine, and prints for each environment and kind: the script's median time, the runner's, and the ratio of the two with
its 95 % interval (Welch's t interval of the logarithms of the medians of processes). The two do not take turns, so the
machine should be idle. ``script.py`` imports nothing of this project. ``--matrix matrix.yaml torch-2.x`` takes
environments of the shipped matrix, ``--model examples/lstm_tagger.py --kind small`` another model file. Further words
are options of ``runner run``, such as ``--process plain``.
"""

import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from runner.core.model.cells import Cell, is_control
from runner.store.run import Run, runs

FOLDER = Path(__file__).parent
CLASSES = {
    "numpy": "NumpyModel",
    "torch": "TorchModel",
    "tensorflow": "TensorFlowModel",
    "keras": "KerasModel",
    "jax": "JaxModel",
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LAST_CPU = str(max(os.sched_getaffinity(0)))
"""Where a run on one thread measures, too."""
TARGET = 0.03
"""How far from a script a measured time may be."""


def main(words: Sequence[str]) -> None:
    """Measure, run the scripts, and print a line for each environment and kind."""
    parser = argparse.ArgumentParser(description="plain scripts beside the runner")
    parser.add_argument("environments", nargs="+")
    parser.add_argument("--matrix", default=str(FOLDER / "matrix.yaml"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--model", type=Path, default=FOLDER / "calls.py")
    parser.add_argument("--reports", type=Path, help="an empty folder that keeps the run; default: it is removed")
    parser.add_argument("--kind", default="*", help="of a call, or a case of the model file, such as 'allocate-*'")
    known, options = parser.parse_known_args(words)
    with contextlib.ExitStack() as stack:
        folder = str(known.reports or stack.enter_context(tempfile.TemporaryDirectory()))
        model = known.model.stem.replace("_", "-")
        command = [f"{name}/model/{model}/{known.kind}/**" for name in known.environments]
        command += ["--matrix", known.matrix, "--model", str(known.model)]
        command += ["--rounds", str(known.rounds), "--max-rounds", str(known.rounds), "--seconds", str(known.seconds)]
        command += ["--reports", folder, "--backend", "docker", "--threads", "1", "--busy-ok", *options]
        subprocess.run([sys.executable, "-m", "runner", "run", *command], check=False)
        subprocess.run([sys.executable, "-m", "runner", "check", "--reports", folder], check=False)
        (run,) = runs(Path(folder))
        for line in lines(run, known.model.resolve(), known.rounds, known.seconds):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def lines(run: Run, model: Path, processes: int, seconds: float) -> Iterator[str]:
    """Yield the table: what a script takes, what was measured, and the ratio script / measured."""
    measured: dict[Cell, list[float]] = {}
    images: dict[Cell, str] = {}
    frameworks = {planned["environment"]: planned["framework"] for planned in run.plan()["cells"]}
    for record in run.records():
        if record.status == "ok":
            measured.setdefault(record.cell, []).append(median(record.seconds))
            images[record.cell] = str(record.facts["digest"])
    for cell in sorted(measured, key=lambda cell: cell.id):
        if is_control(cell.environment):
            continue
        words = [CLASSES[frameworks[cell.environment]], cell.case, cell.phase, str(seconds)]
        scripts = [script(images[cell], model, words) for _ in range(processes)]
        ratio, low, high = interval(scripts, measured[cell])
        near = "" if abs(math.log(ratio)) < math.log1p(TARGET) else "  beyond 3 %"
        times = f"{median(scripts) * 1e6:10.1f} us {median(measured[cell]) * 1e6:10.1f} us"
        call = f"{cell.environment:14} {cell.case:14} {cell.phase:8}"
        yield f"{call} {times} {ratio:7.3f} ({low:.3f} to {high:.3f}){near}"


def script(image: str, model: Path, words: Sequence[str]) -> float:
    """Return the median seconds of a call in a fresh process."""
    mount = ["--volume", f"{FOLDER}:/scripts:ro", "--volume", f"{model.parent}:/models:ro", "--network", "none"]
    variables = [word for variable in THREADS for word in ("--env", f"{variable}=1")]
    command = ["docker", "run", "--rm", *mount, "--cpuset-cpus", LAST_CPU, *variables, "--entrypoint", "python3", image]
    done = subprocess.run(
        [*command, "/scripts/script.py", f"/models/{model.name}", *words], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def interval(scripts: Sequence[float], measured: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of geometric means of two samples of medians, and its 95 % interval (Welch)."""
    from scipy import stats

    tested = stats.ttest_ind(
        [math.log(value) for value in scripts], [math.log(value) for value in measured], equal_var=False
    )
    low, high = tested.confidence_interval(0.95)
    middle = (low + high) / 2
    return math.exp(middle), math.exp(low), math.exp(high)


if __name__ == "__main__":
    main(sys.argv[1:])
