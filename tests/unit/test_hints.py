"""Commands and lines of YAML that the program prints: the command line accepts them, and a run of them is short.

Those in the text of the program are read from its source. An expression within a text has an example here, and so has
a word in capitals; a new one without an example fails.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from runner import cli
from runner.matrix import load, parse
from runner.plan.document import plan_document
from runner.plan.machine_file import read_machine_file
from runner.session.listed_cells import cell_ids
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from runner.session.quick_cells import too_long
from runner.session.suggest import RunAgain

ROOT = Path(__file__).parents[2]
PYTHONS = dict.fromkeys(("3.6", "3.7", "3.10", "3.11"), True)
MACHINE = replace(read_machine_file(ROOT / "docs" / "machines" / "h200-595.json"), interpreters=PYTHONS)
SHIPPED = load(ROOT / "matrix.yaml")
CELL = "nn-lstm/rnn-step/lstm-b32-h128/forward/fp32"
RUN = "20261125-193423-dd4e"

EXAMPLES = {
    "{shlex.join(sides)}{options}": "torch-1.0 torch-2.x --workload rnn-step --budget 2h",
    "{framework}==A {framework}==B": "torch==1.0.0 torch==1.12.1",
    "{f' {names}' if names else ''}": " torch-1.12 torch-2.x",
    "{cells} --rounds 10{self.options}": f"'torch-1.0/{CELL}' 'torch-2.x/{CELL}' --rounds 10 --device cpu",
    "{run_name(run)}{options}": RUN,
    "{run_name(stored)}": RUN,
    "{measured.run.path}": f"reports/runs/{RUN}",
    "{run.id}": RUN,
    "{head.executor}": "dask://head:8786",
    "{header.executor}": "dask://head:8786",
    "{self.environment}": "torch-2.x",
    "{others_shown}": "torch-1.12 torch-2.x",
    "{request.name}": "torch-2.x",
    "{name}": "torch-2.x",
    "{new}": "torch-2.x-plus",
    "{0}": "torch-2.x",
    "{' '.join(missing)}": "torch-1.0 torch-2.x",
    "{outlook.name}": "venv",
    "{known.key}{folder}": "torch-2.x --reports reports",
    "{file}": "examples/smallest.py",
    "{shlex.quote(str(file))}": "examples/smallest.py",
    "{followed.environment}": "torch-2.x",
    "{environment.framework}=={newest}": "torch==1.12.1",
    "{named.text}": "torchvision:resnet18",
    "explain RELEASE RELEASE MODEL": "explain torch==1.0.0 torch==1.12.1 examples/smallest.py",
    "RELEASE RELEASE": "torch==1.0.0 torch==1.12.1",
    "BASE OTHER...": "torch-1.0 torch-2.x",
    "BASE OTHER": "torch-1.0 torch-2.x",
    "bisect MODEL --good RELEASE --bad RELEASE": "bisect examples/smallest.py --good torch==1.0.0 --bad torch==1.12.1",
    "history CELL": f"history show {CELL}",
    "CELL": CELL,
    "KEY": "torch-2.x",
    "RUN": RUN,
    "ADDRESS": "dask://head:8786",
    "FOLDER": "certificates",
    "FILE": "examples/smallest.py",
}
"""Part of a text -> what may stand there."""
NAMED = frozenset(
    ["compare", "export", "wrap", "bisect", "explain", "reproduce", "import", "run --model", "run --executor", "worker"]
)
"""What a text names as a command or an option, and does not tell anybody to type."""


def texts(source: str) -> Iterator[str]:
    """Yield the texts of a module without its docstrings; an expression within a text stands in braces."""
    tree = ast.parse(source)
    parts, docstrings = set[ast.AST](), set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
        if isinstance(node, ast.Expr):
            docstrings.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts | docstrings:
            yield node.value


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands that a text names, without ``runner``: in backticks, or from there to its end."""
    yield from re.findall(r"`runner ([^`\n]+)`", text)
    yield from re.findall(r"(?:^|: )runner ((?!\{)[a-z][^`\n]*)$", text)


TEXTS = tuple(text for path in sorted((ROOT / "runner").rglob("*.py")) for text in texts(path.read_text("utf-8")))


def filled(command: str) -> str:
    for part, example in EXAMPLES.items():
        command = command.replace(part, example)
    return command


PRINTED = sorted({command for text in TEXTS for command in commands_in(text)} - NAMED)
DOCUMENTED = sorted(set(commands_in((ROOT / "docs" / "errors.md").read_text("utf-8"))) - NAMED)


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the command and its options, as the command line reads them; raises where it refuses them."""
    command, words = get_command(cli.app), shlex.split(line)
    names = []
    while hasattr(command, "commands"):
        is_named = bool(words) and words[0] in command.commands
        names.append(words.pop(0) if is_named or command.name != "history" else "show")
        command = command.commands[names[-1]]
    return " ".join(names), command.make_context(names[-1], words).params


def refusal(line: str) -> str:
    """Return why a command is not accepted, selects nothing, or is refused as too long; empty for a good one."""
    name, given = parsed(line)
    selectors = given.get("selectors") or given.get("environments") or ()
    if name in ("run", "plan", "build") and not given.get("resume") and not given.get("executor"):
        known = {field.name: given[field.name] for field in fields(Options) if field.name in given}
        options = replace(Options(**known), matrix=ROOT / "matrix.yaml", device="cpu", seed=0)
        plan = planned(options, MACHINE)
        problem = too_long(plan, SHIPPED, options)
        if problem is not None:
            return problem.message
        return "" if plan.blocks else "nothing runs"
    if name == "list" and given["topic"] == "tests":
        return "" if next(cell_ids(ROOT / "matrix.yaml", selectors)) else "no cell"
    return ""


def test_the_program_prints_commands() -> None:
    assert len(PRINTED) > 30, PRINTED
    assert "list tests" in PRINTED
    assert "list tests" in DOCUMENTED


@pytest.mark.parametrize("command", sorted({*PRINTED, *DOCUMENTED}))
def test_a_command_that_is_printed_works(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    line = filled(command)
    assert not re.search(r"[{}]|\b[A-Z]{3,}\b", re.sub("HOST", "head", line)), (
        f"give an example for a part of {command!r}"
    )
    assert refusal(line) == ""


def test_a_wrong_command_is_found() -> None:
    for line, why in (("run torch-1.0 --presett quick", "presett"), ("compare", "Missing parameter"), ("rn", "rn")):
        with pytest.raises(Exception, match=why):
            parsed(line)
    assert refusal("run torch-1.0 torch-2.x --workload rnn-sequence").startswith("it takes about")


@pytest.mark.parametrize("taken", [1, 3, 9, 40])
def test_the_command_that_measures_again_works(taken: int) -> None:
    typed = Options(selectors=["torch-1.0", "torch-2.x"], matrix=ROOT / "matrix.yaml", device="cpu", seed=0)
    plan = planned(typed, MACHINE)
    header = {"program": "1", "command": replace(typed, preset="quick").to_argv(), "matrix": str(ROOT / "matrix.yaml")}
    again = RunAgain(plan_document(plan), header, Path("reports"))
    cells = [each.cell.id for each in plan.cells if each.skip is None]
    for command in (again.command(cells[::taken], 30), again.command(cells[:taken], longer=4)):
        assert refusal(command.removeprefix("runner ")) == ""


ENVIRONMENTS = (
    '{torch-2.x: {framework: torch, release: "2.*", python: "3.11", requirements: [torch, numpy], lock: a.txt}%s}'
)
SNIPPETS = {
    "{0}-more: {extends: {0}, add: [{package}]}": (
        "environments",
        ENVIRONMENTS % ", torch-2.x-more: {extends: torch-2.x, add: [pillow]}",
    ),
    'add: [torchvision], env: {OMP_WAIT_POLICY: "passive"}': (
        "environments",
        ENVIRONMENTS % ', x: {extends: torch-2.x, add: [torchvision], env: {OMP_WAIT_POLICY: "passive"}}',
    ),
    "env: {keys}": ("environments", ENVIRONMENTS.replace("lock:", 'env: {MKL_CBWR: "..."}, lock:') % ""),
    "phases: [{all_of}]": ("workloads", "{rnn-step: {phases: [forward, train]}}"),
    "registry: and the repository, such as registry.example.com/team/matrix-runner": (
        "registry",
        "registry.example.com/team/matrix-runner",
    ),
    "version: 1": ("version", "1"),
}
"""YAML as the program prints it -> a key of a matrix file and its value, with it."""


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_line_of_yaml_that_is_printed_is_accepted(snippet: str) -> None:
    assert any(snippet in text.replace("{{", "{").replace("}}", "}") for text in TEXTS)
    key, value = SNIPPETS[snippet]
    keys = {"version": "1", "environments": ENVIRONMENTS % "", "workloads": "{rnn-step: {}}", key: value}
    parse("".join(f"{name}: {of}\n" for name, of in keys.items()).encode(), "matrix.yaml")
