"""Does a user's program take as long as we say? Each kind of call in a plain script, and as the runner measures it.

``python -m benchmarks.plain_scripts numpy-1.16 numpy-2.x`` takes about four minutes for each environment, needs a
Docker engine, and prints for each environment and kind: the script's median time, the runner's, and the ratio of the
two: the median of the rounds, with the lowest and the highest of them. Of 7 rounds, these two hold the median ratio in
98 % of runs, whatever the distribution (Conover, Practical nonparametric statistics, 1999, section 3.2). Where a ratio
is beyond 3 %, the line ends with what ``runner check`` says of that test. The two take turns: the script runs in a
fresh container of the same image as soon as the runner has measured the call in a round, while the runner waits.

``script.py`` imports nothing of this project. ``--matrix matrix.yaml torch-2.x`` takes environments of the shipped
matrix, ``--model examples/lstm_tagger.py --kind small`` another model file. Further words are options of
``runner run``, such as ``--process plain``.
"""

import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from unittest.mock import patch

from runner.analysis.model import QualityIssue
from runner.cli import main as run_command
from runner.core.model import Event, Outcome
from runner.core.model.cells import Cell, is_control
from runner.measure.rounds import measure
from runner.session.check import check
from runner.session.execution import device_worker
from runner.store.run import runs

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
ABOUT_RESULTS = {"unchecked"}
"""Quality issues that do not warn of a time."""


class Scripts:
    """Runs a plain script after each round of a cell.

    Attributes:
        seconds: for each cell, a pair for each round: the median seconds of the script, and of the runner.
    """

    def __init__(self, model: Path, seconds: float) -> None:
        """Take the model file, and how long a script measures."""
        self.model, self.budget = model, seconds
        self.seconds: dict[Cell, list[tuple[float, float]]] = {}

    def between(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield what the runner measures, which waits until the script has run."""
        for event in events:
            if isinstance(event, Outcome) and event.reply["status"] == "ok" and not is_control(event.cell.environment):
                words = [CLASSES[event.ready.framework], event.cell.case, event.cell.phase, str(self.budget)]
                pair = script(event.ready.digest, self.model, words), median(event.reply["seconds"])
                self.seconds.setdefault(event.cell, []).append(pair)
            yield event


def main(words: Sequence[str]) -> None:
    """Measure both in turns, and print a line for each environment and kind."""
    parser = argparse.ArgumentParser(description="plain scripts beside the runner")
    parser.add_argument("environments", nargs="+")
    parser.add_argument("--matrix", default=str(FOLDER / "matrix.yaml"))
    parser.add_argument("--rounds", type=int, default=7)
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
        scripts = Scripts(known.model.resolve(), known.seconds)

        with (
            patch.object(device_worker, "measure", lambda *given: scripts.between(measure(*given))),
            patch.object(sys, "argv", ["runner", "run", *command]),
            contextlib.suppress(SystemExit),
        ):
            run_command()
        (run,) = runs(Path(folder))
        issues = check(Path(folder), run.id, Path(known.matrix)).quality_issues
        sys.stdout.write("".join(line + "\n" for line in lines(scripts.seconds, issues)))


def lines(seconds: Mapping[Cell, Sequence[tuple[float, float]]], issues: Sequence[QualityIssue]) -> Iterator[str]:
    """Yield the table: what a script takes, what was measured, and the ratio script / measured."""
    near = warned = 0
    for cell in sorted(seconds, key=lambda cell: cell.id):
        ratios = sorted(script / measured for script, measured in seconds[cell])
        ratio = median(ratios)
        is_far = abs(math.log(ratio)) >= math.log1p(TARGET)
        codes = sorted({issue.code for issue in issues if issue.cell == cell.id and issue.serious} - ABOUT_RESULTS)
        codes = codes if is_far else []
        near, warned = near + (not is_far), warned + bool(codes)
        times = [median(column) * 1e6 for column in zip(*seconds[cell], strict=True)]
        call = f"{cell.environment:14} {cell.case:14} {cell.phase:8} {times[0]:10.1f} us {times[1]:10.1f} us"
        beyond = f"  beyond 3 %: {', '.join(codes) or 'no warning'}" if is_far else ""
        yield f"{call} {ratio:7.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}){beyond}"
    yield f"{near} of {len(seconds)} within {TARGET:.0%}, and {warned} beyond it with a warning"


def script(image: str, model: Path, words: Sequence[str]) -> float:
    """Return the median seconds of a call in a fresh process."""
    mount = ["--volume", f"{FOLDER}:/scripts:ro", "--volume", f"{model.parent}:/models:ro", "--network", "none"]
    variables = [word for variable in THREADS for word in ("--env", f"{variable}=1")]
    command = ["docker", "run", "--rm", *mount, "--cpuset-cpus", LAST_CPU, *variables, "--entrypoint", "python3", image]
    done = subprocess.run(
        [*command, "/scripts/script.py", f"/models/{model.name}", *words], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
