"""What it takes to repeat a run: its command, settings, versions and digests, as text."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from runner.analysis.model import Dataset
from runner.core.model.cells import is_control
from runner.report.formatting import counted

Fact = tuple[str, str]
"""Name and text."""

NOT_REPEATED = frozenset(["--rounds", "--max-rounds", "--reports", "--traceback"])
"""Options of `runner run` that a command leaves out which measures some cells of the run again, with more rounds."""


def provenance(dataset: Dataset) -> Iterator[Fact]:
    """Yield the command of a run, its settings, and what it ran with; a fact that was not recorded is left out."""
    known = dataset.provenance
    if known.get("command") is not None and known.get("program"):
        yield "command", " ".join(map(_word, ["runner", "run", *known["command"], *_executor(known)]))
        yield "runner", str(known["program"])
    for name, text in (
        ("measuring code", known.get("harness")),
        ("started", known.get("at")),
        ("seed", known.get("seed")),
        ("rounds", _rounds(dataset)),
        ("threads", known.get("threads")),
        ("backend", known.get("backend")),
        ("device", known.get("device_name")),
        ("driver", known.get("driver")),
        ("matrix", PurePath(str(known["matrix"])).name if known.get("matrix") else None),
    ):
        if text:
            yield name, str(text)
    for environment, digest in (known.get("digests") or {}).items():
        if not is_control(environment):
            yield environment, str(digest)


def repeated_options(known: Mapping[str, Any]) -> str:
    """Return the options of a run without which its cells do not exist, or would be measured in another way.

    Args:
        known: the provenance of the run.

    >>> repeated_options({"command": ["torch-2.x", "--rounds", "3", "--pin", "--model", "~/my network.py"]})
    " --pin --model ~/'my network.py'"
    """
    options: list[list[str]] = []
    for word in known.get("command") or ():
        if word.startswith("--"):
            options.append([word])
        elif options:
            options[-1].append(word)
    repeated = [option for option in options if option[0] not in NOT_REPEATED]
    return "".join(f" {_word(word)}" for words in (*repeated, _executor(known)) for word in words)


def _executor(known: Mapping[str, Any]) -> list[str]:
    return ["--executor", str(known["executor"])] if known.get("executor") else []


def _word(word: str) -> str:
    """Return a word for a shell, which still finds the home folder at its start."""
    return f"~/{shlex.quote(word[2:])}" if word.startswith("~/") else shlex.quote(word)


def _rounds(dataset: Dataset) -> str:
    known = dataset.provenance
    if "rounds" not in known:
        return ""
    text = f"{counted(known['rounds'], 'round')} of {known.get('seconds', 0):g} s for each test"
    round_limit = known.get("max_rounds", known["rounds"])
    return f"{text}, up to {round_limit} for open ones" if round_limit > known["rounds"] else text
