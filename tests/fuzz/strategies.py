"""The generators of inputs: real examples with changes, drawn from any source of ``tests.fuzz.draws``."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from runner.core.model import SKIP_CODES
from tests.fuzz import examples, plans, wire
from tests.fuzz.draws import Draws
from tests.fuzz.edits import draw_bytes, draw_edit
from tests.fuzz.folders import stored_files
from tests.fuzz.limits import ROOT
from tests.fuzz.values import RAW, TEXTS
from tests.fuzz.views import VIEWS

MATRIX_TOKENS = tuple(
    word.encode("utf-8", "surrogateescape")
    for word in (
        *("\n", "\n  ", ": ", "- ", "[", "]", "{", "}", ",", "&a ", "*a", "<<: ", "!!python/object ", "!!int ", "? ", "| "),
        *("> ", "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n", "\t", "\x00", "\ufeff", "\udcff", "\x85", "~", "null", "@"),
        *("version: 1\n", "environments:\n", "workloads:\n", "presets:\n", "exclude:\n", "measure:\n", "gpu:\n"),
        *("framework: torch\n", "release: '1.0'\n", "python: 3.10\n", "requirements: [torch==1.0]\n", "image: x\n"),
        *("select: '*'\n", "cases: ['*']\n", "phases: [train]\n", "rnn-step:\n", "2026-11-20", "1e400", ".inf", ".nan"),
        *("0x10", "0o17", "1_000", "1:30:00", "yes", "on", "\\U00110000", '"\\ud800"', "9" * 4301, "k" * 2000 + ": 1\n"),
        *("a: &a [*a]\n", "{a: " * 60, "[" * 60, "- " * 60, "*" * 300, "[!a-", "]*[", "é", "torch>=1.0,<2", "!torch-*"),
    )
)
JSON_TOKENS = tuple(
    word.encode()
    for word in (
        *("[", "]", "{", "}", ",", ":", '"', "\\", "\\ud800", "\\u0000", "null", "true", "NaN", "Infinity", "-", "1e999"),
        *(" ", "\n", "//", '"version": 1,', '"machine": {', '"gpus": []', "0", "-1", "1.5", "9" * 4301, *RAW.values()),
    )
    if len(word) < 10_000
)
SELECTORS = ("torch-*", "torch>=1.0,<2", "framework:tf", "!torch-1.0", "*/nn-lstm/*", "[", "torch>", ">=", "", "x", "a/b")
OPTIONS: Mapping[str, Sequence[Any]] = {
    "selectors": (None, *([text] for text in (*SELECTORS, *TEXTS)), ["torch-*", "!torch-2.x"], []),
    "workload": (None, ["rnn-step"], ["rnn-step", "deepbench-gemm"], ["x"], [""]),
    "preset": (None, "quick", "full", "x", ""),
    "precision": (None, ["fp32"], ["tf32", "fp16"], ["x"]),
    "device": (None, "cpu", "cuda", "cuda:0", "cuda:all", "cuda:9", "cuda:-1", "cuda:0,0", "GPU-1", "", "cuda:", "cuda:٣"),
    "backend": ("auto", "docker", "venv", "host", "x"),
    "rounds": (None, 1, 3, 10**6),
    "max_rounds": (None, 1, 10**6),
    "budget": (None, "8h", "90s", "0s", "", "x", "1e400h", "-1s", "9" * 400 + "h", "٣h"),
    "seconds": (None, 0.01, 2.0, 1e308, float("inf"), float("nan")),
    "threads": (None, 1, 10**6),
    "protocol": (None, "aligned", "published"),
    "seed": (None, 0, -1, 10**30),
    "allow_jit": (False, True),
    "pin": (None, True, False),
}
LIMIT = 40
"""Files and replies beyond that get no change."""


def matrix(draws: Draws) -> bytes:
    """Return the bytes of a matrix file: a part of the shipped one with a few changes, in text or in structure."""
    if draws.chance(1, 3):
        document = plans.small_matrix()
        for _ in range(1 + draws.below(3)):
            document = _edited(draws, document)
        return json.dumps(document).encode()
    return draw_bytes(draws, draws.pick(_matrix_texts()), MATRIX_TOKENS)


def _matrix_texts() -> Sequence[bytes]:
    if not _TEXTS:
        shipped = (ROOT / "matrix.yaml").read_bytes()
        head, _, rest = shipped.partition(b"environments:\n")
        entries = rest.split(b"\n\n  ")
        tail = rest[rest.index(b"\nworkloads:") :]
        start = head + b"environments:\n"
        few = start + b"\n\n  ".join(entries[2:6]) + b"\n" + tail
        _TEXTS.extend((shipped, few, few, start + b"\n\n  ".join(entries[4:6]) + b"\nworkloads: {rnn-step: {}}\n"))
        _TEXTS.append(b"version: 1\nenvironments:\n  a: {framework: numpy, release: '2', python: '3.11'}\nworkloads:\n")
        _TEXTS.append(json.dumps(plans.small_matrix(), indent=1).encode())
    return _TEXTS


_TEXTS: list[bytes] = []


def _edited(draws: Draws, document: Any) -> Any:
    from tests.fuzz.edits import edited

    return edited(document, [draw_edit(draws, document)])


def planning(draws: Draws) -> dict[str, Any]:
    """Return a matrix that is probably accepted, a machine and options."""
    value = plans.small_matrix()
    for _ in range(draws.below(3)):
        value = _edited(draws, value) if draws.chance(1, 3) else _accepted(draws, value)
    machine: Any = draws.pick(plans.machines())
    if draws.chance(1, 4):
        machine = _edited(draws, machine)
    options = {name: draws.pick(OPTIONS[name]) for name in OPTIONS if draws.chance(1, 6)}
    return {"matrix": value, "machine": machine, "options": {"seed": 0, **options}}


def _accepted(draws: Draws, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a matrix with a change that the models accept."""
    environments, workloads = dict(document.get("environments") or {}), dict(document.get("workloads") or {})
    kind = draws.below(6)
    if kind == 0 and len(environments) > 1:
        environments.pop(draws.pick(list(environments)))
    elif kind == 1 and environments:
        name = draws.pick(list(environments))
        release = draws.pick(("0.1", "1.0.0", "2.99", "1.0.0rc1", "9" * 30, "1!2.0", "x", "0.1.12_2", "2.x"))
        environments[f"{name}-{draws.below(3)}"] = {**environments[name], "release": release}
    elif kind == 2 and workloads:
        name = draws.pick(list(workloads))
        phases = draws.pick((["compile"], ["train", "train"], ["compile-warm"], ["forward", "gradient"], ["x"], []))
        workloads[name] = {"cases": draws.pick((["*"], ["?*"], ["[a-z]*"])), "phases": phases}
    elif kind == 3 and environments:
        reason = draws.pick(SKIP_CODES)
        select = f"{draws.pick(list(environments))}/*"
        return {**document, "exclude": [{"select": select, "reason": reason}]}
    elif kind == 4:
        selectors = [{"cases": ["*/*"], "environments": [draws.pick(("*", "!torch-*", "torch>=1", "x", "["))]}, "*/*/train"]
        return {**document, "presets": {"quick": {"select": [draws.pick(selectors)], "rounds": 1 + draws.below(9)}}}
    else:
        key = draws.pick(("rounds", "max_rounds", "seconds", "timeout", "threads", "margin", "controls", "restart"))
        value = draws.pick((1, 2, 10**9, 10**300, 0.5, 1e300, True, 1e-320, 0.999999))
        return {**document, "measure": {**(document.get("measure") or {}), key: value}}
    return {**document, "environments": environments, "workloads": workloads}


def machine(draws: Draws) -> bytes:
    """Return the bytes of a machine file."""
    document: Any = draws.pick(plans.machines())
    if draws.chance(1, 4):
        return draw_bytes(draws, json.dumps(document, indent=draws.pick((None, 1))).encode(), JSON_TOKENS)
    for _ in range(1 + draws.below(3)):
        document = _edited(draws, document)
    from tests.fuzz.values import to_json

    return to_json(document).encode()


def document(draws: Draws) -> Any:
    """Return a stored plan with changes."""
    value: Any = plans.document()
    for _ in range(1 + draws.below(3)):
        value = _edited(draws, value)
    return value


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
REPLIES = (1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 20, 25, 30)
"""Indices of replies of a run; a result has its facts only at the end of a cell, so each edit is of all that it has."""


def session(draws: Draws) -> dict[str, Any]:
    """Return changes to the replies of a server of a run, and what is shown of it afterwards."""
    changes = []
    shape = {**examples.hello(), **examples.reply(), "cold": {"0": 5.0}, "stage": "turn", "id": 3}
    for _ in range(1 + draws.below(4)):
        changes.append(_change_of_reply(draws, draws.below(26), shape))
    return {"changes": changes, "view": draws.pick([view for view in VIEWS if view not in {"nightly", "resume"}])}


GENERATORS: Mapping[str, Callable[[Draws], Any]] = {
    "matrix": matrix,
    "planning": planning,
    "machine": machine,
    "document": document,
    "folder": folder,
    "wire": conversation,
    "session": session,
}
"""Target -> the generator of its inputs."""


def inputs(target: str) -> st.SearchStrategy[Any]:
    """Return the strategy of a target's inputs."""
    generator = GENERATORS[target]
    return st.composite(lambda draw: generator(Draws.from_hypothesis(draw)))()
