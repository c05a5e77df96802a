"""The generators of inputs: real examples with changes, drawn from any source of ``tests.fuzz.draws``."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from hypothesis import strategies as st

from runner.core.model import SKIP_CODES
from runner.matrix import WORKLOADS
from tests.fuzz import databases, examples, plans, typed, wire
from tests.fuzz.draws import Draws
from tests.fuzz.edits import Edit, draw_bytes, draw_edit, edited
from tests.fuzz.folders import stored_files
from tests.fuzz.limits import ROOT
from tests.fuzz.values import NUMBERS, RAW, TEXTS, to_json
from tests.fuzz.views import VIEWS


def _tokens(escaped: str) -> tuple[bytes, ...]:
    r"""Return the tokens of a text, with a bar between them; ``\n`` and the like are decoded."""
    tokens = escaped.replace("\n", "").split("¦")
    return tuple(token.encode("ascii").decode("unicode_escape").encode("utf-8", "surrogateescape") for token in tokens)


MATRIX_TOKENS = _tokens(r"""
\n¦\n  ¦: ¦- ¦[¦]¦{¦}¦,¦&a ¦*a¦<<: ¦!!python/object ¦!!int ¦? ¦| ¦> ¦'¦"¦#¦---\n¦...\n¦%YAML 1.1\n¦\t¦\x00¦\ufeff
¦\udcff¦\x85¦~¦null¦@¦version: 1\n¦environments:\n¦workloads:\n¦presets:\n¦exclude:\n¦measure:\n¦gpu:\n
¦framework: torch\n¦release: '1.0'\n¦python: 3.10\n¦requirements: [torch==1.0]\n¦image: x\n¦select: '*'\n¦cases: ['*']\n
¦phases: [train]\n¦rnn-step:\n¦2026-11-20¦1e400¦.inf¦.nan¦0x10¦0o17¦1_000¦1:30:00¦yes¦on¦\\U00110000¦"\\ud800"
¦a: &a [*a]\n¦[!a-¦]*[¦\xe9¦torch>=1.0,<2¦!torch-*
""") + tuple(text.encode() for text in ("9" * 4301, "k" * 2000 + ": 1\n", "{a: " * 60, "[" * 60, "- " * 60, "*" * 300))
JSON_TOKENS = _tokens(r"""
[¦]¦{¦}¦,¦:¦"¦\\¦\\ud800¦\\u0000¦null¦true¦NaN¦Infinity¦-¦1e999¦ ¦\n¦//¦"version": 1,¦"machine": {¦"gpus": []¦0¦-1¦1.5
""") + tuple(text.encode() for text in RAW.values() if len(text) < 10_000)
SELECTORS = (
    "torch-*",
    "torch>=1.0,<2",
    "framework:tf",
    "!torch-1.0",
    "*/nn-lstm/*",
    "[",
    "torch>",
    ">=",
    "",
    "x",
    "a/b",
)
OPTIONS: Mapping[str, Sequence[Any]] = {
    "selectors": (None, *([text] for text in (*SELECTORS, *TEXTS)), ["torch-*", "!torch-2.x"], []),
    "workload": (None, ["rnn-step"], ["rnn-step", "deepbench-gemm"], ["x"], [""]),
    "preset": (None, "quick", "full", "x", ""),
    "precision": (None, ["fp32"], ["tf32", "fp16"], ["x"]),
    "device": (
        None,
        "cpu",
        "cuda",
        "cuda:0",
        "cuda:all",
        "cuda:9",
        "cuda:-1",
        "cuda:0,0",
        "GPU-1",
        "",
        "cuda:",
        "cuda:٣",
    ),
    "backend": ("auto", "docker", "venv", "host", "x"),
    "all": (True, False),
    "rounds": (None, 1, 3, 10**6),
    "max_rounds": (None, 1, 10**6),
    "budget": (None, "8h", "90s", "0s", "", "x", "1e400h", "-1s", "9" * 400 + "h", "٣h"),
    "seconds": (None, 0.01, 2.0, 1e308, float("inf"), float("nan")),
    "threads": (None, "1", "2,1", "1,1", "0", "x", str(10**6)),
    "protocol": (None, "aligned", "published"),
    "seed": (None, 0, -1, 10**30),
    "allow_jit": (False, True),
    "pin": (None, True, False),
}


def matrix(draws: Draws) -> bytes:
    """Return the bytes of a matrix file: a part of the shipped one with a few changes, in text or in structure."""
    if draws.chance(1, 3):
        document = plans.small_matrix()
        for _ in range(1 + draws.below(3)):
            document = _edited(draws, document)
        return json.dumps(document).encode()
    return draw_bytes(draws, draws.pick(_matrix_texts()), MATRIX_TOKENS)


@cache
def _matrix_texts() -> Sequence[bytes]:
    """Return matrix files of 200 bytes to 3 KB, and the shipped one once."""
    shipped = (ROOT / "matrix.yaml").read_bytes()
    head, _, rest = shipped.partition(b"environments:\n")
    entries = rest.split(b"\n\n  ")
    start, end = head + b"environments:\n", b"\nworkloads:\n  rnn-step: {phases: &p [train], precisions: [fp32]}\n"
    few = [start + b"  " + b"\n\n  ".join(entries[at : at + 2]) + end for at in (2, 4, 6)]
    presets = b"  lm-lstm: {phases: *p}\npresets:\n  quick: {select: ['*/*'], rounds: 2}\ngpu: {clocks: max}\n"
    tiny = b"version: 1\nenvironments:\n  a: {framework: torch, release: '2', python: '3.11', requirements: [torch]}\n"
    dumped = yaml.safe_dump(dict(plans.small_matrix())).encode()
    return (shipped, *(2 * few), few[0] + presets, few[1] + presets, *(3 * [tiny + end]), tiny + end + presets, dumped)


def _edited(draws: Draws, document: Any) -> Any:
    return edited(document, [draw_edit(draws, document)])


def planning(draws: Draws) -> dict[str, Any]:
    """Return changes to a matrix that is probably accepted, a machine and options."""
    value: Any = plans.small_matrix()
    changes: list[Edit] = []
    for _ in range(draws.below(3)):
        edit = draw_edit(draws, value) if draws.chance(1, 3) else _accepted(draws, value)
        changes.append(edit)
        value = edited(value, [edit])
    machine = draws.below(len(plans.machines()))
    machine_changes = [draw_edit(draws, plans.machines()[machine])] if draws.chance(1, 4) else []
    options = {name: draws.pick(OPTIONS[name]) for name in OPTIONS if draws.chance(1, 15)}
    return {
        "changes": changes,
        "machine": machine,
        "machine_changes": machine_changes,
        "options": {"seed": 0, **options},
    }


def _accepted(draws: Draws, document: Any) -> Edit:
    """Return an edit of a matrix that the models probably accept."""
    environments = document.get("environments") if isinstance(document, dict) else None
    if not isinstance(environments, dict) or not environments:
        return draw_edit(draws, document)
    kind, name = draws.below(6), draws.pick(list(environments))
    if kind == 0:
        return ["delete", ["environments", name], None]
    if kind == 1 and isinstance(environments[name], dict):
        release = draws.pick(("0.1", "1.0.0", "2.99", "1.0.0rc1", "9" * 30, "1!2.0", "x", "0.1.12_2", "2.x"))
        return ["set", ["environments", f"{name}-{draws.below(3)}"], {**environments[name], "release": release}]
    if kind == 2:
        phases = draws.pick((["compile"], ["train", "train"], ["compile-warm"], ["forward", "gradient"], ["x"], []))
        choice = {"cases": draws.pick((["*"], ["?*"], ["[a-z]*"])), "phases": phases}
        return ["set", ["workloads", draws.pick(list(WORKLOADS))], choice]
    if kind == 3:
        return ["set", ["exclude"], [{"select": f"{name}/*", "reason": draws.pick(SKIP_CODES)}]]
    return _accepted_preset(draws) if kind == 4 else _accepted_setting(draws)


def _accepted_preset(draws: Draws) -> Edit:
    environments = [draws.pick(("*", "!torch-*", "torch>=1", "x", "["))]
    selector = draws.pick(({"cases": ["*/*"], "environments": environments}, "*/*/forward", "*"))
    return ["set", ["presets", "quick"], {"select": [selector], "rounds": 1 + draws.below(9)}]


def _accepted_setting(draws: Draws) -> Edit:
    key = draws.pick(("rounds", "max_rounds", "seconds", "timeout", "threads", "margin", "controls", "restart"))
    value = draws.pick((1, 2, 10**9, 10**300, 0.5, 1e300, True, 1e-320, 0.999999))
    return ["set", ["measure", key], value]


def machine(draws: Draws) -> bytes:
    """Return the bytes of a machine file."""
    document: Any = draws.pick(plans.machines())
    if draws.chance(1, 4):
        return draw_bytes(draws, json.dumps(document, indent=draws.pick((None, 1))).encode(), JSON_TOKENS)
    for _ in range(1 + draws.below(3)):
        document = _edited(draws, document)
    return to_json(document).encode()


def document(draws: Draws) -> dict[str, Any]:
    """Return changes to the plan of a run, its cases and its header, which agree with each other for ``--resume``."""
    files = stored_files("resume")
    changes: list[list[Any]] = []
    for _ in range(1 + draws.below(3)):
        name = draws.pick(("plan.json", "plan.json", "cases.json", "journal.jsonl"))
        if name == "journal.jsonl":
            kind, path, argument = draw_edit(draws, files[name][0])
            path, argument = [0, *path], [0, *argument] if kind == "swap" else argument
            changes.append([name, "edit", kind, path, argument])
        else:
            changes.append([name, "edit", *draw_edit(draws, files[name])])
    return {"view": "resume", "changes": [*changes, ["journal.jsonl", "sign"]]}


def folder(draws: Draws) -> dict[str, Any]:
    """Return a view, and changes to the files of a run."""
    view = draws.pick(list(VIEWS))
    files = stored_files(view)
    changes = [_change_of_file(draws, files) for _ in range(1 + draws.below(3))]
    if view == "resume" and draws.chance(1, 2):
        changes.append(["journal.jsonl", "sign"])
    return {"view": view, "changes": changes}


def _change_of_file(draws: Draws, files: Mapping[str, Any]) -> list[Any]:
    groups = ("records/", "records/", "journal.jsonl", "plan.json", "cases.json", "machine.json", "environments.json")
    group = draws.pick((*groups, "nights/", "anchors.json"))
    name = draws.pick([name for name in files if name.startswith(group)])
    kind = draws.below(16)
    if kind >= 4:
        return [name, "edit", *draw_edit(draws, files[name])]
    if kind == 3:
        return [name, draws.pick(("remove", "folder"))]
    if kind == 2:
        return [name, "text", draws.pick((*TEXTS, *(text for text in RAW.values() if len(text) < 10_000)))]
    if kind == 1:
        return [name, "cut", draws.below(3000)]
    return [name, "byte", draws.below(3000), draws.below(256)]


def _change_of_reply(draws: Draws, index: int, message: Any) -> list[Any]:
    kind = draws.below(20)
    if kind >= 3:
        return [index, "edit", *draw_edit(draws, message)]
    if kind == 2:
        return [index, "line", draws.pick((*TEXTS, *(text for text in RAW.values() if len(text) < 10_000)))]
    return [index, draws.pick(("drop", "twice", "end", "silence"))]


def conversation(draws: Draws) -> dict[str, Any]:
    """Return changes to what one server says, and the sizes of the pieces in which it arrives."""
    messages = _CONVERSATION
    changes = []
    for _ in range(1 + draws.below(3)):
        index = draws.pick((1, 1, 8, 8, 8, 10, draws.below(len(messages))))
        changes.append(_change_of_reply(draws, index, messages[index]))
    sizes = [draws.pick((0, 1, 7, 4096)) for _ in range(draws.below(3))]
    return {"changes": changes, "sizes": [size or 0 for size in sizes if size != 1 or draws.chance(1, 20)]}


_CONVERSATION = wire.conversation()


def session(draws: Draws) -> dict[str, Any]:
    """Return changes to the replies of a server of a run, and what is shown of it afterwards."""
    shape = {**examples.hello(), **examples.reply(), "cold": {"0": 5.0}, "stage": "turn", "id": 3}
    changes = [_change_of_reply(draws, draws.below(26), shape) for _ in range(1 + draws.below(4))]
    return {"changes": changes, "view": draws.pick([view for view in VIEWS if view not in {"nightly", "resume"}])}


BYTES: tuple[Any, ...] = tuple(
    {kind: digits}
    for kind in ("hex", "text")
    for digits in ("", "00", "ff", "c328", "2d31", "6100", "eda080", "41" * 9)
)
"""Bytes, and texts that are not UTF-8."""
TIMES = (
    *("", "x", "2026", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+14:00"),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2036-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    *("2026-W01-1T00:00Z", "٢٠٢٦-01-01T00:00:00Z"),
)


def database(draws: Draws) -> dict[str, Any]:
    """Return changes to the rows of a history, and what is shown of it."""
    names = databases.tables()
    is_loose = draws.chance(1, 2)
    changes = [_change_of_row(draws, names) for _ in range(1 + draws.below(4))]
    if is_loose and draws.chance(1, 6):
        changes.append([draws.pick(list(names)), draws.below(12), "twice", None])
    return {"view": draws.pick(list(databases.VIEWS)), "is_loose": is_loose, "changes": changes}


def _change_of_row(draws: Draws, names: Mapping[str, Sequence[str]]) -> list[Any]:
    table = draws.pick(("measurements", "measurements", "measurements", "runs", "runs", *names))
    column = draws.pick(names[table])
    values = draws.pick((NUMBERS, NUMBERS, TEXTS, BYTES, (None, True), TIMES if column == "at" else NUMBERS))
    return [table, draws.below(12), column, draws.pick(values)]


GENERATORS: Mapping[str, Callable[[Draws], Any]] = {
    "matrix": matrix,
    "planning": planning,
    "machine": machine,
    "document": document,
    "folder": folder,
    "wire": conversation,
    "session": session,
    "database": database,
    "model": typed.model,
    "typed": typed.typed,
}
"""Target -> the generator of its inputs."""


def inputs(target: str) -> st.SearchStrategy[Any]:
    """Return the strategy of a target's inputs."""
    generator = GENERATORS[target]

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return generator(Draws.from_hypothesis(draw))

    return drawn()
