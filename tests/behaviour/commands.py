"""The commands whose answers are kept: each runs in a folder of its own, a copy of a folder of the material."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """Steps that run after each other in one folder.

    Attributes:
        name: what its answer is stored as.
        steps: words of the command line, or Python code where it starts with ``import``.
        folder: the folder of the material that is copied; empty for the checkout's own matrix.
        live: whether it measures, so that only the shape of its answer is kept.
    """

    name: str
    steps: tuple[str, ...]
    folder: str = ""
    live: bool = False


DRAWN = "--seed 1"
COMMANDS = (
    *("plan", "build", "run", "nightly", "bisect", "reproduce", "doctor", "tune", "clocks", "clean", "lock", "schema"),
    *("compare", "check", "report", "open", "list", "accuracy", "export", "import", "alerts", "schedule", "worker"),
    "wrap",
    *("history", "history show", "history rebuild", "history prune", "history accept", "nothing", ""),
)
FORMATS = ("table", "md", "json", "csv", "html")
PRESETS = ("quick", "heritage", "smoke", "networks", "standard", "published")
PLANS = {
    "table": "--preset quick",
    "why": "--preset quick --why",
    "coverage": "--format coverage",
    "range": "'torch>=1.0,<2.1' --preset heritage --why",
    "framework": "framework:tf '!tf-1.8' --preset networks --why",
    "glob": "'torch-*' '*/lm-lstm/*' --format json",
    "workload": "--workload deepbench-sparse --precision fp32 --why",
    "options": "torch-2.x --preset quick --rounds 4 --max-rounds 9 --seconds 0.2 --threads 1 --budget 30m",
    "published": "--preset heritage --protocol published --why",
    "host": "--backend host --python {python} --framework numpy --workload rnn-step --format json",
    "model": "torch-2.x jax --model {stored}/made/mistakes/models/good/my_network.py --why",
    "example": "torch-2.x --model examples/transformer_block.py --format json",
    "corpus": "torch-2.x --workload lm-lstm --corpus README.md --why",
}
MISTAKES = {
    "preset": "plan --preset nothing",
    "selector": "plan nothing",
    "selector-range": "plan 'torch>=x'",
    "framework": "plan framework:nothing",
    "empty": "plan torch-1.0 '!torch-1.0'",
    "workload": "plan --workload nothing",
    "precision": "plan --precision fp99",
    "rounds": "plan --rounds 0",
    "max-rounds": "plan --rounds 5 --max-rounds 2",
    "budget": "plan --budget soon",
    "device": "plan --device cuda:9",
    "backend": "plan --backend nothing",
    "docker": "plan --backend docker",
    "python": "plan --backend host --python /nowhere/python",
    "corpus": "plan --corpus /nowhere.txt",
    "model": "plan --model /nowhere.py",
    "machine": "plan --machine /nowhere.json",
    "output": "plan --preset smoke -o /nowhere/plan.json",
    "no-matrix": "plan --matrix /nowhere.yaml",
    "option": "plan --nothing",
    "run-preset": "run --preset nothing",
    "run-executor": "run --preset smoke --executor ftp://nowhere",
    "run-resume-with": "run --resume --preset quick",
    "run-resume": "run --resume",
    "run-resume-missing": "run --resume nothing",
    "nightly-base": "nightly --preset smoke --base nothing",
    "nightly-if-missed": "nightly --preset smoke --if-missed 25:99",
    "nightly-budget": "nightly --budget 0s",
    "bisect-cell": "bisect nothing --good torch-1.0",
    "bisect-no-good": "bisect nn-lstm/rnn-step/lstm-b32-h128/forward/fp32",
    "bisect-ends": "bisect torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32 --good nothing --backend venv",
    "reproduce": "reproduce nothing",
    "reproduce-cell": "reproduce nothing/torch-2.x",
    "lock": "lock",
    "lock-missing": "lock nothing",
    "lock-check": "lock --check",
    "lock-check-images": "lock --check --images",
    "compare-missing": "compare nothing torch-2.x",
    "compare-one": "compare torch-2.x",
    "compare-publication": "compare published:nothing/x torch-2.x",
    "check": "check nothing",
    "check-example": "check reports/examples/quick-2-cores",
    "report": "report nothing",
    "open": "open nothing",
    "accuracy": "accuracy",
    "export": "export -o x.csv",
    "export-suffix": "export -o x.doc",
    "list": "list nothing",
    "list-runs": "list",
    "alerts": "alerts",
    "alerts-test": "alerts --test",
    "alerts-issue": "alerts --issue nothing",
    "history": "history",
    "history-cell": "history show nothing/x",
    "history-url": "history show --history mysql://x/y",
    "history-password": "history show --history postgresql://ann:secret@nowhere/bench",
    "history-accept": "history accept torch-2.x --reason x",
    "history-accept-run": "history accept torch-2.x --reason x --run nothing",
    "import": "import /nowhere.csv",
    "import-publication": "import published:nothing",
    "worker": "worker http://nowhere",
    "worker-none": "worker",
    "schedule-option": "schedule -- --nothing",
    "schedule-preset": "schedule -- --preset nothing",
    "schedule-at": "schedule --at 99:99",
    "clean": "clean --dry-run --matrix /nowhere.yaml",
}
MACHINE = {
    "doctor": "doctor",
    "doctor-json": "doctor torch-2.x tf-1.15 --format json",
    "clocks": "clocks",
    "clocks-json": "clocks show --format json",
    "clocks-reset": "clocks reset",
    "tune": "tune",
    "schema": "schema",
    "version": "--version",
    "list-environments": "list environments",
    "list-cases": "list cases",
    "list-presets": "list presets",
    "clean": "clean --dry-run",
    "clean-all": "clean --dry-run --all",
    "build-host": "build --backend host --python {python} --framework numpy --workload rnn-step --device cpu",
}
KINDS = ("systemd", "cron", "github", "gitlab")
SCHEDULES = {
    **{form: f"schedule --format {form} -- --preset quick --budget 6h" for form in KINDS},
    **{f"{form}-files": f"schedule --at 04:05 --format {form} -o units -- --preset smoke --no-pin" for form in KINDS},
}  # fmt: skip
RUN = (
    *("check {run} --reports {reports}", "check {run} --reports {reports} --format json", "list --reports {reports}"),
    *("accuracy {run} --reports {reports}", "report {run} --reports {reports} --published braun2018"),
    *("report {run} --reports {reports}", "report {run} --reports {reports} --summary"),
    *(f"export {{run}} --reports {{reports}} -o samples.{suffix}" for suffix in ("csv", "parquet")),
    *(f"compare {{sides}} --run {{run}} --reports {{reports}} --format {form}" for form in FORMATS),
    *(
        f"compare {{sides}} --run {{run}} --reports {{reports}} {words}"
        for words in ("--best", "-o chart.svg", "--format md")
    ),
    "import runner; print(runner.load_samples('{reports}/runs/{run}').to_csv())",
    "import runner; r = runner.load_run('{reports}/runs/{run}', matrix='none.yaml'); print(r.table.to_csv(), r.answer)",
    "import runner; r = runner.load_run('{reports}/runs/{run}'); print(r.rounds.to_csv(), r.failures, r.grade)",
    "import runner; r = runner.compare(*'{sides}'.split(), run='{run}', reports='{reports}'); print(r.table.to_csv())",
)
SITE = (
    *("list --reports {reports}", "check --reports {reports}", "alerts --reports {reports}"),
    *(
        "compare {sides} --reports {reports}",
        "compare published:braun2018/torch-0.4 {other} --reports {reports} --format json",
    ),
    *("history show --reports {reports}", "history rebuild --reports {reports}", "history rebuild --reports {reports}"),
    *("history show --reports {reports} --format json", "history show --reports {reports} --format csv"),
    *("history show '{cell}' --reports {reports}", "history show '{other}/*' --reports {reports} --last 2"),
    *(f"history prune --days {{days}} --reports {{reports}} {last}" for last in ("--dry-run", "--folders")),
    *("report --site public --reports {reports}", "history accept {other} --reason 'a kernel' --reports {reports}"),
    *("alerts --reports {reports} --format json", "clean --dry-run --reports {reports}"),
)
READING = (
    *(
        "list --reports .",
        "check --reports . --format json",
        "compare torch-1.0 torch-2.x --reports .",
        "report --reports .",
    ),
    *("run --resume --reports .", "history rebuild --reports .", "history show --reports .", "alerts --reports ."),
    *("history accept 'torch-*' --reason x --reports .", "export --reports . -o samples.csv"),
)
SITES = {  # folder -> (reports folder, sides, cell)
    "made/runs": ("reports", "torch-1.0 torch-2.x", "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/train/fp32"),
    "made/runs/hosts": (".", "torch-1.12 torch-2.x", "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/train/fp32"),
    "measured/runs": ("reports", "np-a np-b", "np-b/numpy-loop/rnn-step/rnn-b32-h128/train/fp32"),
    **{
        f"measured/{name}": ("reports", "np-a np-b", "np-b/numpy-loop/rnn-step/rnn-b32-h128/train/fp32")
        for name in ("nights", "nights-open", "nights-killed")
    },
}
COPIES = frozenset({"measured/nights-open", "measured/nights-killed"})
"""Folders whose runs are those of another folder."""
CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"
SEARCH = f"bisect {CELL} --good np-a --bad np-d --device cpu --backend venv --busy-ok --max-rounds 8"
IMPORT = (
    "import {path}",
    "history show --format csv",
    "import {path}",
    "history rebuild",
    "history show --format json",
)
HOST = "--backend host --python {python} --framework numpy --device cpu --threads 1 --seed 1 --busy-ok --seconds 0.05"
VENV = "--backend venv --device cpu --threads 1 --seed 1 --busy-ok --seconds 0.05"
RECORD = "'reports/runs/*/records/np-a~numpy-loop~*~forward~fp32.1.1.json'"
LIVE = {
    "run": (f"run --workload rnn-step {HOST} --rounds 3 --max-rounds 3", "check --format json", "report --summary"),
    "run-venv": (
        f"run np-a np-b --preset tiny {VENV} --rounds 1 --max-rounds 1",
        f"reproduce {RECORD} --busy-ok --format json",
    ),
    "night": (f"nightly --workload rnn-step {HOST} --budget 1m", f"nightly --workload rnn-step {HOST} --budget 1m"),
    "nights": (f"nightly np-b --preset tiny {VENV} --budget 1m", f"nightly np-b --preset tiny {VENV} --budget 1m"),
}


def commands(stored: Path, tree: Path) -> Iterator[Command]:
    """Give all commands for a body of material and a checkout."""
    yield from (Command(f"help/{name.replace(' ', '-') or 'all'}", (f"{name} --help",)) for name in COMMANDS)
    for group, table in {"mistake": MISTAKES, "machine": MACHINE, "schedule": SCHEDULES}.items():
        yield from (Command(f"{group}/{name}", (words,)) for name, words in table.items())
    yield from _material(stored)
    yield from _mistaken(stored / "made/mistakes")
    yield from (Command(f"live/{name}", steps, "measured/locks", live=True) for name, steps in LIVE.items())
    yield Command("live/resume", ("list", "run --resume", "list", "check --format json"), "measured/runs", live=True)
    for name, words in PLANS.items():
        option = "" if name == "host" else "--machine docs/machines/h200-580.json"
        yield Command(f"plan/{name}", (f"plan {words} {DRAWN} {option}",))
    for preset in PRESETS:
        words = f"plan --preset {preset} {DRAWN} --format json"
        yield Command(f"plan/cpu-{preset}", (f"{words} --device cpu --backend venv",))
        for machine in sorted((tree / "docs/machines").glob("*.json")):
            if preset == "quick" or machine.stem in {"h200-595", "v100-sxm2-384"}:
                yield Command(f"plan/{machine.stem}-{preset}", (f"{words} --machine docs/machines/{machine.name}",))


def _material(stored: Path) -> Iterator[Command]:
    """Give the commands that read stored runs, nights, searches and histories, and those that import."""
    for folder, (reports, sides, cell) in SITES.items():
        days = "1" if folder.startswith("made") else "60"  # so that the answer is the same tomorrow
        names = {"reports": reports, "sides": sides, "other": sides.split()[1], "cell": cell, "days": days}
        yield Command(f"site/{folder}", _filled(SITE, names), folder)
        for path in sorted((stored / folder / reports / "runs").glob("*") if folder not in COPIES else ()):
            yield Command(f"run/{folder}-{path.name}", _filled(RUN, names | {"run": path.name}), folder)
    for pattern in ("made/damaged/*", "made/newer/*", "made/old/*", "made/alerts/*"):
        for path in sorted(stored.glob(pattern)):
            yield Command(f"read/{path.parent.name}-{path.name}", READING, str(path.relative_to(stored)))
    for path in sorted((stored / "made/databases").glob("*")):
        steps = (
            "history show --reports .",
            *SITE[8:13],
            "report --site public --reports {reports}",
            "history prune --days 30 --reports .",
        )
        names = {
            "reports": ".",
            "days": "1",
            "other": "torch-2.x",
            "cell": "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32",
        }
        yield Command(f"history/{path.name}", _filled(steps, names), f"made/databases/{path.name}")
    names_of_files = [path.name for path in sorted((stored / "made/imports").glob("*"))]
    for name in [*names_of_files, "asv/bench1", "published:braun2018"]:
        yield Command(f"import/{name.replace('/', '-')}", _filled(IMPORT, {"path": name}), "made/imports")
    yield Command(
        "import/several", ("import *.json run.tar.gz theirs --release 9", "history", "alerts"), "made/imports"
    )
    dry = (f"{SEARCH} --dry-run", f"{SEARCH} --all --dry-run --format json", "clean --dry-run")
    yield Command("search/dry", dry, "measured/search")
    yield Command("live/search", (f"{SEARCH} --format json",), "measured/search", live=True)
    yield Command(
        "plan/tiny", (f"plan --preset tiny {DRAWN} --device cpu --backend venv --format json",), "measured/runs"
    )
    issues = [json.loads(path.read_text())["alerts"] for path in sorted(stored.glob("*/*/reports/nights/*.json"))]
    for key in sorted({entry["key"] for entries in issues for entry in entries}):
        yield Command(f"issue/{key}", (f"alerts --issue {key}",), "measured/nights-open")


def _filled(steps: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(step if "{python}" in step else step.format(**names) for step in steps)


def _mistaken(folder: Path) -> Iterator[Command]:
    name = "made/mistakes"
    for path in sorted(folder.glob("matrices/*.yaml")):
        words = f"schema --check {path.name}"
        yield Command(f"matrix/{path.stem}", (words, f"list cases --matrix {path.name}"), f"{name}/matrices")
    for path in sorted(folder.glob("machines/*.json")):
        words = f"plan --why --seed 1 --matrix matrices/good.yaml --machine machines/{path.name}"
        yield Command(f"machine-file/{path.stem}", (words,), name)
    for path in sorted(folder.glob("models/*")):
        words = f"plan --matrix matrices/good.yaml {DRAWN} --device cpu --model models/{path.name}/my_network.py --why"
        yield Command(f"model/{path.name}", (words,), name)
