"""A function of a file, measured without a model file, in a real run that is resumed, compared and proposed again."""

import re
import shlex

from tests.integration.conftest import Runner

NETS = """\
import numpy as np
from layers import rectified


def attention(queries, keys):
    scores = np.einsum("bqd,bkd->bqk", queries, keys)
    return rectified(scores - scores.mean(-1, keepdims=True))
"""
LAYERS = "def rectified(x):\n    return x * (x > 0)\n"
LENGTHS = ("--rounds", "2", "--max-rounds", "2", "--seconds", "0.05", "--backend", "venv")


def test_a_function_of_a_file_has_a_verdict_and_is_proposed_again(runner: Runner) -> None:
    (runner.folder / "nets.py").write_text(NETS)
    (runner.folder / "layers.py").write_text(LAYERS)
    named = ("--model", "nets.py:attention", "--input", "4x8x16", "--input", "4x8x16")
    done = runner("run", "np-old", "np-new", *named, *LENGTHS)
    assert done.returncode == 0, done.stderr
    records = runner.records()
    cell = "model/attention/4x8x16_4x8x16/forward/fp32"
    assert {record["cell"] for record in records} == {f"np-old/{cell}", f"np-new/{cell}"}
    assert {(record["status"], record["facts"]["model_check"]["fp64"]) for record in records} == {("ok", True)}
    assert set(records[0]["facts"]["model_files"]) == {"attention_wrapper.py", "layers.py", "nets.py"}
    compared = runner("compare", "np-old", "np-new")
    assert "attention/4x8x16_4x8x16" in compared.stdout
    proposed = [line for line in done.stderr.splitlines() if re.search(f": {re.escape(runner.name)} run ", line)]
    assert all(f" {shlex.join(named)}" in line for line in proposed)


def test_a_mistake_in_the_function_is_at_its_line(runner: Runner) -> None:
    (runner.folder / "nets.py").write_text(NETS.replace("bkd->bqk", "bkd->bkk"))
    (runner.folder / "layers.py").write_text(LAYERS)
    named = ("--model", "nets.py:attention", "--input", "4x8x16", "--input", "4x8x16")
    done = runner("run", "np-old", "np-new", *named, *LENGTHS)
    assert done.returncode == 1
    assert {record["class"] for record in runner.records()} == {"crash"}
    assert all(record["reason"].startswith("nets.py:6: ValueError: ") for record in runner.records())


def test_a_saved_wrapper_measures_the_same(runner: Runner) -> None:
    (runner.folder / "nets.py").write_text(NETS)
    (runner.folder / "layers.py").write_text(LAYERS)
    named = ("nets.py:attention", "--input", "4x8x16", "--input", "4x8x16")
    assert runner("wrap", *named, "--output", "saved.py").returncode == 0
    assert (runner.folder / "saved.py").read_text() == runner("wrap", *named).stdout
    plan = runner.json("plan", "np-old", "np-new", "--model", "saved.py", "--backend", "venv", "--format", "json")
    cells = {each["id"] for each in plan["cells"] if "@" not in each["id"]}
    assert cells == {f"{name}/model/saved/4x8x16_4x8x16/forward/fp32" for name in ("np-old", "np-new")}


def test_a_class_without_its_input_is_a_mistake_of_the_plan(runner: Runner) -> None:
    path = runner.folder / "nets.py"
    path.write_text("import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): ...\n")
    done = runner("plan", "--model", "nets.py:Net", "--backend", "venv")
    assert done.returncode == 2
    assert "nets.py:3:9: error: Net.forward() needs the parameter 'x'" in done.stderr
    assert "--input 1x3x64x64" in done.stderr
