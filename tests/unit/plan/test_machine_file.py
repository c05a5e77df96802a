"""The description of another machine: what doctor writes can be read, and every mistake has its place."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.bounds import LARGEST
from runner.core.errors import RunnerError, UsageError
from runner.core.model import Gpu
from runner.machine.doctor import Examination
from runner.plan.machine_file import MACHINE_BYTES, MachineDescription, read_machine_file
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from tests.unit.machine.test_doctor import ENGINE, FACTS, H200, outlook

ROOT = Path(__file__).parents[3]
DOCUMENT: Mapping[str, Any] = {
    "version": 1,
    "machine": {
        "cores": 16,
        "memory_bytes": 100,
        "gpus": [{"name": "NVIDIA H200", "capability": [9, 0], "driver": "580.95.05"}],
    },
}


def written(folder: Path, text: str) -> Path:
    path = folder / "m.json"
    path.write_text(text)
    return path


def machine(**changes: Any) -> str:
    """Return a description, one key to the line, with some keys of the machine changed, or removed where None."""
    keys = {**DOCUMENT["machine"], **changes}
    return json.dumps({**DOCUMENT, "machine": {name: value for name, value in keys.items() if value != ""}}, indent=1)


def message_of(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_machine_file(written(folder, text))
    return str(caught.value).replace(f"{folder}/", "")


def test_what_doctor_writes_is_read(tmp_path: Path) -> None:
    gpu = replace(H200, memory=141_000_000_000)
    facts = replace(FACTS, gpus=(gpu,), interpreters={"3.6": None, "3.11": "/usr/bin/python3.11"}, memory_limit=7)
    document = Examination(facts=facts, findings=(), outlooks=(outlook(),)).json()
    path = written(tmp_path, json.dumps(document))
    assert read_machine_file(path) == MachineDescription(
        file=path,
        cpu="EPYC",
        cores=8,
        memory=7,
        gpus=(gpu,),
        engine=True,
        passes_gpus=False,
        interpreters={"3.6": False, "3.11": True},
        glibc="2.36",
    )
    document["machine"]["engine"] = {**ENGINE, "gpus": True}
    document["machine"]["memory_limit_bytes"] = None
    described = read_machine_file(written(tmp_path, json.dumps(document)))
    assert (described.passes_gpus, described.memory) == (True, 64_000_000_000)
    document["machine"]["engine"] = None
    described = read_machine_file(written(tmp_path, json.dumps(document)))
    assert (described.engine, described.passes_gpus) == (False, False)


def test_little_is_enough(tmp_path: Path) -> None:
    described = read_machine_file(written(tmp_path, json.dumps(DOCUMENT)))
    uuid = "GPU-described-0"
    assert described.gpus == (Gpu(uuid=uuid, name="NVIDIA H200", capability=(9, 0), driver="580.95.05"),)
    assert (described.engine, described.interpreters, described.glibc) == (False, {}, None)
    assert read_machine_file(written(tmp_path, machine(gpus=[]))).gpus == ()


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "machines").glob("*.json")), ids=lambda path: path.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    (gpu,) = read_machine_file(path).gpus
    assert path.stem.rpartition("-")[2] == gpu.driver.partition(".")[0]
    assert gpu.memory >= 8 << 30


def test_the_example_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "plan-for-another-machine.md").read_text("utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert read_machine_file(written(tmp_path, block)).gpus[0].name == "NVIDIA H200"


def test_every_mistake_is_told_at_once_with_its_keys(tmp_path: Path) -> None:
    gpu = {"name": "NVIDIA H200", "capability": "9.0", "driver": "R550"}
    text = machine(cores=0, memory_bytes="", gpus=[gpu])
    assert [block.splitlines()[0] for block in message_of(tmp_path, text).split("\n\n")] == [
        "error: m.json: machine.cores: input should be greater than or equal to 1, found 0",
        "error: m.json: machine.memory_bytes is missing",
        'error: m.json: machine.gpus.0.capability: input should be a valid tuple, found "9.0"',
        """error: m.json: machine.gpus.0.driver: string should match pattern '^[0-9]+(\\.[0-9]+)*$', found "R550\"""",
    ]
    assert message_of(tmp_path, text).count("hint: make one with `runner doctor") == 4


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"version": 1,', "m.json:1:15: error: this is not JSON: Expecting property name enclosed in double quotes"),
        ("[1]", "m.json:1:1: error: this is not a JSON object"),
        ("{}", "error: m.json: version is missing"),
        (json.dumps({**DOCUMENT, "version": 2}), "error: m.json: version: input should be 1, found 2"),
        (json.dumps({**DOCUMENT, "version": "1"}), 'error: m.json: version: input should be 1, found "1"'),
        (json.dumps({"version": 1}), "error: m.json: machine is missing"),
        (machine(cores=1.5), "error: m.json: machine.cores: input should be a valid integer, found 1.5"),
        (machine(cores=True), "error: m.json: machine.cores: input should be a valid integer, found true"),
        (
            machine(cores=10**400),
            f"error: m.json: machine.cores: input should be less than or equal to {LARGEST}, found 1{'0' * 39}",
        ),
        (machine(gpus={}), "error: m.json: machine.gpus: input should be a valid tuple, found {}"),
        (
            machine(engine="\x1b[2J"),
            r'error: m.json: machine.engine: input should be a valid dictionary, found "\u001b[2J"',
        ),
        (
            machine(interpreters={"3.6": 1}),
            "error: m.json: machine.interpreters.3.6: input should be a valid string, found 1",
        ),
    ],
)
def test_a_mistake_and_its_keys(tmp_path: Path, text: str, first: str) -> None:
    assert message_of(tmp_path, text).splitlines()[0] == first


def test_a_message_has_no_control_characters(tmp_path: Path) -> None:
    message = message_of(tmp_path, machine(interpreters={"\x1b[2J": 1}))
    assert "machine.interpreters" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("capability", [[9], [9, 0, 1], [9.5, 0], "90", None])
def test_a_capability_is_two_numbers(tmp_path: Path, capability: object) -> None:
    gpu = {"name": "NVIDIA H200", "capability": capability, "driver": "580.95.05"}
    assert "m.json: machine.gpus.0.capability" in message_of(tmp_path, machine(gpus=[gpu]))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.json", "No such file"), (tmp_path, "it is a folder")):
        with pytest.raises(UsageError, match=words) as caught:
            read_machine_file(path)
        assert "runner doctor --format json" in str(caught.value)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot read"):
        read_machine_file(binary)


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "large", "folder"])
def test_a_description_is_a_regular_file_of_bounded_size(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind  # an absolute kind is the path
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        path.write_bytes(b" " * (MACHINE_BYTES + 1))
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*: it is (not a regular file|larger than|a folder)") as caught:
        read_machine_file(path)
    assert caught.value.problems[0].hint


CONFUSED: tuple[object, ...] = (
    None,
    True,
    -1,
    3.5,
    10**30,
    "",
    "\0",
    "\u202e",
    "9" * 5000,
    "1." + "9" * 5000,
    [],
    [[]],
    {},
    {"a": 1},
    [9, 0, 1],
    [True, False],
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from _paths(each, (*path, key))


def _replaced(document: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    copied = json.loads(json.dumps(document))
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return copied


@pytest.mark.simulation
@pytest.mark.parametrize("value", CONFUSED, ids=lambda value: repr(value)[:20])
def test_a_value_of_another_type_anywhere_is_planned_for_or_refused(tmp_path: Path, value: object) -> None:
    shipped = json.loads((ROOT / "docs" / "machines" / "h200-580.json").read_text())
    options = Options(
        matrix=ROOT / "matrix.yaml", selectors=["torch-1.0", "torch-2.x"], workload=["rnn-step"], preset="quick"
    )
    for path in _paths(shipped):
        file = written(tmp_path, json.dumps(_replaced(shipped, path, value)))
        try:
            planned(options, read_machine_file(file))
        except RunnerError as error:
            assert error.problems[0].message  # noqa: PT017  either is right, and nothing else is
