"""Material that is made: runs of all kinds, damaged, old and newer ones, nights, alerts, histories, and mistakes.

``python -m tests.behaviour.made FOLDER``, with the code before the change. It measures nothing and takes seconds.
"""

import json
import random
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from alembic import command
from sqlalchemy import text

from runner.history import upgrade
from runner.history.database import History
from runner.history.engine import engine_of, writing
from tests.fuzz import examples
from tests.integration.history.test_database import FIRST_TABLES
from tests.support import damaged_runs, histories, host_runs
from tests.support.changed_runs import change_header, unsealed
from tests.support.fake_runs import bad, cell, make, realistic, rounds
from tests.support.model_files import SOURCE, write_model
from tests.support.nights import Receivers, change, ended, many, night, run_of

ROOT = Path(__file__).parents[2]
CELLS = many(4)
TABLE = "cell,seconds,device,source,release,date,low,high\n"
ROWS = "attention of a layer,0.0021,NVIDIA H100,a blog,2.9.1,2026-10-02,0.0020,0.0022\n=1+1,0.1,CPU,a paper,,,,\n"
FIGURES = {"figures": [{"cell": "a cell", "seconds": 0.5, "device": "CPU", "source": "a paper"}]}
MATRIX = """\
version: 1
environments:
  torch-1.0: {framework: torch, release: "1.0.0", python: "3.6", lock: docker/locks/torch-1.0.txt}
workloads: {rnn-step: {phases: [forward, train]}}
presets: {quick: {select: [rnn-step/lstm-b32-h128], rounds: 3, seconds: 0.6}}
"""
MISTAKES = {
    "wrong-key": MATRIX.replace("lock:", "lokc:"),
    "wrong-value": MATRIX.replace("rounds: 3", "rounds: -3"),
    "wrong-phase": MATRIX.replace("[forward, train]", "[foward, train]"),
    "wrong-framework": MATRIX.replace("framework: torch", "framework: troch"),
    "several": MATRIX.replace("lock:", "lokc:").replace("0.6", "x").replace("rnn-step:", "rnn-stop:"),
    "no-yaml": MATRIX.replace("workloads: {", "workloads: ["),
    "newer": MATRIX.replace("version: 1", "version: 9"),
    "no-lock": MATRIX.replace("docker/locks/torch-1.0.txt", "nowhere.txt"),
    "good": MATRIX.replace(", lock: docker/locks/torch-1.0.txt", ", requirements: [torch==1.0.0, numpy]"),
}
MACHINES = {
    "empty": {"version": 1},
    "newer": {"version": 9, "machine": {"cores": 1}},
    "wrong": {"version": 1, "machine": {"cores": "many", "memory_bytes": -1, "gpus": [{"name": 3}]}},
    "small": {"version": 1, "machine": {"cores": 2, "memory_bytes": 8 << 30, "gpus": [], "interpreters": {}}},
}
MODELS = {
    "no-class": SOURCE.replace("TorchModel", "T").replace("NumpyModel", "N"),
    "no-python": SOURCE.replace("def weights(", "def weights"),
    "no-method": SOURCE.replace("def forward", "def forwards").replace("def train", "def trains"),
    "no-file": SOURCE.replace("data/*.txt", "nothing/*.txt"),
    "no-value": SOURCE.replace('{"width": 8}', '{"width": 4 + 4}'),
    "parameter": SOURCE.replace('"width": 8', '"depth": 8'),
    "good": SOURCE,
}


def runs(folder: Path) -> None:
    """Make runs: like a laptop's, with every fact, without an end, of several hosts, and without a good record."""
    reports = folder / "reports"
    realistic(reports)
    damaged_runs.small_run(reports, later=10)
    damaged_runs.small_run(reports, ended=False, later=20)
    failed = [bad(cell(name), 0, "oom", "too much") for name in ("torch-1.0", "torch-2.x")]
    make(reports, failed, later=30)
    boards = {host_runs.GPU_1: [("asr-lstm", "1x320-ce-short")], host_runs.DESK: [("rnn-step", "lstm-b32-h128")]}
    host_runs.realistic(folder / "hosts", boards)


def old(folder: Path) -> None:
    """Make runs with journals of versions 1 and 2, and a night of version 1 about one of them."""
    for version in (1, 2):
        run = damaged_runs.small_run(folder / f"journal-{version}", later=version)
        path = run.path / "journal.jsonl"
        lines = [unsealed(line) for line in path.read_text().splitlines()]
        if version == 1:
            named = [line for line in lines if '"event": "measured"' in line]
            lines = [line.replace('"version": 2, "event": "measured"', '"version": 1') for line in named]
        path.write_text("\n".join(lines) + "\n")
    tonight = examples.night()
    first = {"changes": [{name: tonight["changes"][0][name] for name in ("cell", "before", "state", "again")}]}
    for version, document in ((1, first), (2, tonight)):
        nights = folder / f"night-{version}"
        make(nights, rounds(examples.CELLS[1], [0.3, 0.3, 0.3]))
        (nights / "nights").mkdir()
        (nights / "nights" / f"{examples.EARLIER}.json").write_text(json.dumps(document))
        (nights / "anchors.json").write_text(json.dumps(examples.anchors()))


def newer(folder: Path) -> None:
    """Make runs of which one file is of a newer program, and nights and anchors of one."""
    for name in ("plan.json", "cases.json", "machine.json", "environments.json", "journal.jsonl"):
        path = damaged_runs.small_run(folder / name).path / name
        path.write_text(
            path.read_text().replace('"version": 1', '"version": 9').replace('"version": 3', '"version": 9')
        )
    change_header(damaged_runs.small_run(folder / "harness"), harness="of another version")
    (folder / "night" / "nights").mkdir(parents=True)
    make(folder / "night", rounds(cell(), [0.3, 0.3, 0.3]))
    (folder / "night" / "nights" / f"{run_of(1)}.json").write_text(json.dumps(examples.night() | {"version": 9}))
    (folder / "night" / "anchors.json").write_text(json.dumps(examples.anchors() | {"version": 9}))


def damaged(folder: Path) -> None:
    """Damage runs by accident and by hand, and nights and anchors with them."""
    for kind in damaged_runs.KINDS:
        damaged_runs.damage(damaged_runs.small_run(folder / kind.replace(" ", "-")), kind, random.Random(kind))
    for seed in range(12):
        damaged_runs.confuse(damaged_runs.small_run(folder / f"confused-{seed}"), random.Random(seed))
    for name, content in {"cut": '{"version": 2, "ch', "list": "[]", "text": "x", "shape": '{"changes": [3]}'}.items():
        reports = folder / f"night-{name}"
        damaged_runs.small_run(reports)
        (reports / "nights").mkdir()
        (reports / "nights" / f"{run_of(1)}.json").write_text(content)
        (reports / "anchors.json").write_text(content)
        (reports / "history.db").write_text(content)


def alerts(folder: Path) -> None:
    """Make nights that confirmed a regression: one alert that is open, one that was refused, and one that is closed."""
    for name, refusing in {
        "open": {},
        "refused": {"2 mailto": "it answered with HTTP status 500"},
        "closed": {},
    }.items():
        receivers = Receivers(dict(refusing))
        for day in (1, 2):
            ended(folder / name, night(day, [change(of, run_of(1)) for of in CELLS], CELLS), receivers)
        if name == "closed":
            ended(folder / name, night(3, [], CELLS), receivers)
        make(folder / name, rounds(CELLS[0], [0.3, 0.3, 0.3]))


def databases(folder: Path) -> None:
    """Make a history of 60 nights, an empty one, one of the first tables, and those of other programs."""
    for name in ("sixty", "empty", "first", "newer", "another"):
        (folder / name).mkdir(parents=True)
        url = f"sqlite:///{folder}/{name}/history.db"
        if name != "first":
            History.open(url).close()
        engine = engine_of(url)
        with writing(engine, url) as connection:
            if name == "first":
                command.upgrade(upgrade.config(connection), "0001")
            newest = {
                "newer": "UPDATE alembic_version SET version_num = '9999'",
                "another": "DROP TABLE alembic_version",
            }
            for statement in (FIRST_TABLES if name == "first" else newest.get(name, "SELECT 1")).split(";"):
                connection.execute(text(statement))
        engine.dispose()
    with History.open(f"sqlite:///{folder}/sixty/history.db") as history:
        for number in range(60):
            cells = [*histories.many_cells(3, 0.5 * 1.004**number), histories.measured(seconds=0.5 + number % 7 / 500)]
            history.add(histories.night(number, *cells, changes=(histories.change(),) if number == 30 else ()))
            history.add(histories.of_hosts(number, 2)) if number % 20 == 19 else None
        history.accept(histories.level(histories.night(40).run))


def imports(folder: Path) -> None:
    """Gather the files of other programs, tables, and runs of another machine, packed and not."""
    shutil.copytree(ROOT / "tests/unit/watch/imports/files", folder)
    (folder / "table.csv").write_text(TABLE + ROWS)
    (folder / "wrong.csv").write_text(TABLE.replace("seconds", "milliseconds") + ROWS)
    (folder / "figures.json").write_text(json.dumps(FIGURES))
    (folder / "unknown.json").write_text('{"a": 1}')
    (folder / "measurement.pickle").write_bytes(b"\x80\x04N.")
    theirs = make(folder / "theirs", rounds(cell(), [1.0, 1.01, 0.99]), host="gpu-box")
    with tarfile.open(folder / "run.tar.gz", "w:gz") as stream:
        stream.add(theirs.path, arcname=f"runs/{theirs.id}")
    (folder / "cut.tar.gz").write_bytes((folder / "run.tar.gz").read_bytes()[:500])


def mistakes(folder: Path) -> None:
    """Write matrices, machines and model files with mistakes."""
    shutil.copytree(ROOT / "tests/fuzz/corpora/matrix", folder / "matrices")
    for name, content in MISTAKES.items():
        (folder / "matrices" / f"{name}.yaml").write_text(content)
    (folder / "machines").mkdir()
    for name, document in MACHINES.items():
        (folder / "machines" / f"{name}.json").write_text(json.dumps(document, indent=1))
    (folder / "machines" / "cut.json").write_text('{"version": 1,')
    for name, source in MODELS.items():
        write_model(folder / "models" / name, source)


MAKERS: tuple[Callable[[Path], None], ...] = (runs, old, newer, damaged, alerts, databases, imports, mistakes)


def main(folder: Path) -> None:
    """Make all of it below a folder; what is there stays."""
    for maker in MAKERS:
        if not (folder / maker.__name__).exists():
            maker(folder / maker.__name__)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute() / "made")
