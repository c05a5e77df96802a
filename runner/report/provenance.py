"""What it takes to repeat a run: its command, settings, versions and digests, as text."""

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from runner.analysis.model import Dataset
from runner.core.model.cells import is_twin
from runner.report.formatting import counted

Fact = tuple[str, str]
"""Name and text."""

REPEATED = (
    "--matrix",
    "--model",
    "--corpus",
    "--protocol",
    "--backend",
    "--python",
    "--framework",
    "--name",
    "--device",
)
"""Options of `runner run` that say what the cells of a run are, and what they were measured on."""


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
        if not is_twin(environment):
            yield environment, str(digest)


def option_values(option: str, command: Sequence[str]) -> list[str]:
    """Return the values that a command gives to an option.

    >>> option_values("--model", ["torch-2.x", "--model", "a.py", "--model", "b.py"])
    ['a.py', 'b.py']
    """
    return [value for name, value in itertools.pairwise(command) if name == option]


def repeated_options(known: Mapping[str, Any]) -> str:
    """Return the options of a run without which its cells do not exist, or would be measured with something else.

    Args:
        known: the provenance of the run.

    >>> repeated_options({"command": ["torch-2.x", "--rounds", "3", "--model", "~/my network.py"]})
    " --model ~/'my network.py'"
    """
    command = known.get("command") or ()
    options = [[option, value] for option in REPEATED for value in option_values(option, command)]
    return "".join(f" {_word(word)}" for words in (*options, _executor(known)) for word in words)


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
    return f"{text}, up to {round_limit} for undecided ones" if round_limit > known["rounds"] else text
