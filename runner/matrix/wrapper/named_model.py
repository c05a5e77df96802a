"""What ``--model`` names: a model file, a class or a function in a file, or a network of a library."""

import ast
import difflib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.core.text import printable
from runner.matrix.model_file import LONGEST_NAME, NETWORK_NAME, network_name

DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
LIBRARIES = {"hf": r".+", "keras": DOTTED, "timm": r"[\w./-]+", "torchvision": DOTTED}
"""Library -> what a name of it looks like; of ``hf`` it is the path of a configuration."""
FORMS = "write FILE.py:NAME for a class or a function of a file, or one of " + ", ".join(
    f"{library}:NAME" for library in LIBRARIES
)
IN_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)(?P<call>\(.*\))?", re.DOTALL)
IN_LIBRARY = re.compile(r"(?P<library>\w+):(?P<name>[^():]+)(?P<call>\(.*\))?", re.DOTALL)
CONFIG = "config"
"""The name of nearly every configuration of Hugging Face: its folder names the network."""


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments that build a network, as they were typed.

    Attributes:
        arguments: as Python writes them, such as ``3, bilinear=True``.
        positional: how many have no name.
        names: those of the others.
    """

    arguments: str
    positional: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A value of ``--model``.

    Attributes:
        text: as it was typed, without ``label``.
        path: the file; the folder of a ``model.py``; of ``hf`` the configuration; None for other libraries.
        library: one of LIBRARIES; empty for a file.
        name: of the class, the function, or in the library; empty for a model file.
        call: the arguments that build it; None where none were typed.
        label: the name of its workload as it was typed, ``small`` of ``small=nets.py:UNet``; empty without one.
    """

    text: str
    path: Path | None
    library: str = ""
    name: str = ""
    call: Call | None = None
    label: str = ""

    @property
    def is_wrapped(self) -> bool:
        """Whether it needs a wrapper: it is no model file."""
        return bool(self.name)

    @property
    def workload(self) -> str:
        """The name of its workload.

        Raises:
            UsageError: no workload can have its name.
        """
        if self.label:
            return self.label
        if not self.name and self.path is not None:
            return network_name(self.path)
        words = re.sub(r"[^a-z0-9]+", "-", self._words().lower()).strip("-")
        name = words[:LONGEST_NAME].strip("-")
        if not NETWORK_NAME.fullmatch(name):
            hint = "rename it: a letter first, then letters, digits and underscores"
            raise UsageError(Problem(f"{self.name!r} cannot name a workload", hint=hint))
        return name

    def _words(self) -> str:
        if self.library == "hf" and self.path is not None:
            return self.path.resolve().parent.name if self.path.stem == CONFIG else self.path.stem
        return self.name.rpartition(".")[2] if self.library in {"keras", "torchvision"} else self.name


def parse_model(text: str) -> NamedModel:
    """Return what a value of ``--model`` names; a file is not looked into.

    A name may stand in front, ``small=nets.py:UNet(8)``; a file whose path looks so, and exists, has none.

    Raises:
        UsageError: it is none of the forms, or its arguments are no plain values.

    >>> parse_model("nets.py:UNet(3, bilinear=True)").call
    Call(arguments='3, bilinear=True', positional=1, names=('bilinear',))
    >>> parse_model("timm:resnet18").workload, parse_model("nets.py:UNet").workload
    ('resnet18', 'unet')
    >>> parse_model("small=nets.py:UNet(8)").workload
    'small'
    """
    if "\0" in text:  # a shell passes no NUL, but the stored command of a run from elsewhere can contain one
        raise UsageError(Problem(f"there is no file {printable(text, 200)}", hint=FORMS))
    label, equals, rest = text.partition("=")
    is_labelled = equals and rest and len(label) <= LONGEST_NAME and NETWORK_NAME.fullmatch(label)
    if is_labelled and not os.path.exists(text):  # noqa: PTH110  Path.exists raises for a name that is too long
        return replace(_unlabelled(rest), label=label)
    return _unlabelled(text)


def _unlabelled(text: str) -> NamedModel:
    """Return what a value of ``--model`` without a name in front names."""
    if ":" not in text or os.path.exists(text):  # noqa: PTH110
        return NamedModel(text, Path(text))
    match = IN_FILE.fullmatch(text)
    if match:
        return NamedModel(text, Path(match["path"]), name=match["name"], call=_call(text, match["call"]))
    match = IN_LIBRARY.fullmatch(text)
    if match is None or not re.fullmatch(LIBRARIES.get(match["library"], "(?!)"), match["name"]):
        raise UsageError(Problem(f"there is no file {printable(text, 200)}", hint=_hint(text)))
    library, name = match["library"], match["name"]
    return NamedModel(text, Path(name) if library == "hf" else None, library, name, _call(text, match["call"]))


def _hint(text: str) -> str:
    """Return what may have been meant."""
    before, _, after = text.partition(":")
    close = difflib.get_close_matches(before[:100], LIBRARIES, 1)
    if close:
        return f"did you mean {close[0]}:{printable(after, 100)}?"
    file = f"{before}.py"
    return f"did you mean {file}:{printable(after, 100)}?" if os.path.isfile(file) else FORMS  # noqa: PTH113


def _call(text: str, written: str | None) -> Call | None:
    """Return the arguments in parentheses; raises UsageError where they are no plain values."""
    if written is None:
        return None
    problem = Problem(
        f"{printable(text, 200)}: the arguments have to be plain values: numbers, texts, True, False, None, or lists",
        hint="such as --model 'nets.py:UNet(3, bilinear=True)'",
    )
    try:
        node = ast.parse(f"f{written}", mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise UsageError(problem)
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise UsageError(problem) from None
    names = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
    if len(names) < len(node.keywords):
        raise UsageError(problem)
    return Call(ast.unparse(node)[2:-1], len(node.args), names)
