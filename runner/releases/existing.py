"""Interpreters and images as they are, named on the command line: ``python:PATH`` and ``image:NAME``.

``session.existing`` finds out what they hold, and ``named`` reads releases, which are made.

>>> split_existing("!a=image:pytorch/pytorch:2.9.1@env:A=1/nn-lstm/*")
('!', Existing(kind='image', source='pytorch/pytorch:2.9.1', name='a'), '@env:A=1/nn-lstm/*')
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from runner.core.errors import Problem, UsageError
from runner.core.paths import expanded, shortened
from runner.matrix.fields import ENVIRONMENT_ID, LONGEST_ID

Kind = Literal["python", "image"]
FOLDERS_OF_ALL = frozenset(
    {
        *("bin", "usr", "local", "shims", "default", "env", "envs", "venv", "venvs"),
        *(".env", ".envs", ".venv", ".venvs", ".pixi"),
    }
)
"""Folders above an interpreter that say nothing about it: those of systems, and the usual ones of projects."""

_WORD = re.compile(r"(?P<mark>!?)(?:(?P<name>[^=:/@!]*)=)?(?P<kind>python|image):(?P<rest>.+)", re.DOTALL)
_LONGEST_PATH = 4096
"""See limits.h(0p), ``PATH_MAX``."""
_VARIANT = re.compile("@(?:env|threads):")
_VARIANT_OR_GLOB = re.compile(rf"{_VARIANT.pattern}|/[^/]*[*?!\[]")
_PATH = r"[a-z0-9._-]+(?:/[a-z0-9._-]+)*"
_TAGGED = re.compile(
    rf"(?P<image>(?:[A-Za-z0-9.-]+(?::[0-9]+)?/{_PATH}|(?![^/]*:[0-9]+/){_PATH})"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]*(?:@sha256:[a-f0-9]+)?|@sha256:[a-f0-9]+))(?P<rest>[/@].*)?",
    re.DOTALL,
)
"""An image with its tag or digest, behind which cells may follow: without one, a slash is a part of the name."""


@dataclass(frozen=True, slots=True)
class Existing:
    """An interpreter or an image as it was typed.

    Attributes:
        kind: which of the two.
        source: the path of the interpreter, or its name on PATH; or the name of the image, with its tag.
        name: the id that was typed for it; empty for one that is made from ``source``.
    """

    kind: Kind
    source: str
    name: str = ""

    @property
    def word(self) -> str:
        """How it is typed, without an id; ``~`` is the home folder."""
        return f"{self.kind}:{shortened(self.source)}"

    def ids(self) -> Iterator[str]:
        """Yield the ids that it may have, the shortest first, each with one more folder.

        >>> [*Existing("python", "/opt/conda/envs/a/bin/python").ids()]
        ['a', 'conda-a', 'opt-conda-a']
        """
        if self.kind == "image":
            parts = re.sub(r":latest$", "", re.sub(r"@sha256:([a-f0-9]{12}).*", r":\1", self.source)).split("/")
        else:
            path = PurePosixPath(self.source)
            parts = [part for part in path.parts[1:-1] if part not in FOLDERS_OF_ALL] or [path.name]
        for count in range(1, min(len(parts), LONGEST_ID) + 1):
            yield _identifier(self.kind, "-".join(parts[-count:]))


def split_existing(selector: str) -> tuple[str, Existing | None, str]:
    """Return the ``!`` of a selector, the interpreter or the image that it names, and what follows; None without one.

    The path of an interpreter ends where a file is, and else before variables and threads: it may have any sign.
    """
    match = _WORD.fullmatch(selector)
    if match is None:
        return "", None, selector
    split = _split_path if match["kind"] == "python" else _split_image
    source, rest = split(match["rest"])
    return match["mark"], Existing(match["kind"], source, match["name"] or ""), rest  # type: ignore[arg-type]  # of Kind


def _split_path(text: str) -> tuple[str, str]:
    """Split at the end of the shortest path of an interpreter, or of a name on PATH that no slash follows."""
    text = expanded(text)
    ends = [*(match.start() for match in re.finditer("[/@]", text)), len(text)]
    for end in (end for end in ends if end <= _LONGEST_PATH):
        is_path = "/" in text[:end] or text[end : end + 1] != "/"  # or a name on PATH, and no folder of this name
        if is_path and (python := shutil.which(text[:end])):
            return os.path.abspath(python), text[end:]  # noqa: PTH100  a virtual environment's python is a link
    end = _before(_VARIANT, text)
    return text[:end], text[end:]


def _split_image(text: str) -> tuple[str, str]:
    match = _TAGGED.fullmatch(text)
    if match is not None:
        return match["image"], match["rest"] or ""
    end = _before(_VARIANT_OR_GLOB, text)
    return f"{text[:end]}:latest", text[end:]


def _before(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return match.start() if match else len(text)


def existing_ids(words: Sequence[Existing], taken: Collection[str] = ()) -> Mapping[Existing, str]:
    """Return the id of each interpreter and image: a name that was typed, or else the shortest that no other has.

    Args:
        words: those of a command.
        taken: ids of other environments.

    Raises:
        UsageError: an id cannot be one, or several have it.
    """
    unique = [*dict.fromkeys(words)]
    names = {word: [word.name] if word.name else [*word.ids()] for word in unique}
    counts = Counter(name for of_word in names.values() for name in dict.fromkeys(of_word))
    ids: dict[Existing, str] = {}
    for word, of_word in names.items():
        free = [name for name in of_word if counts[name] == 1 and name not in taken]
        if not free:
            hint = f"give it a name: `mine={word.word}`"
            raise UsageError(Problem(f"{word.word} cannot have the id {of_word[0]!r}: another has it", hint=hint))
        ids[word] = checked_id(free[0])
    return ids


def checked_id(name: str) -> str:
    """Return a text that can be the id of an environment; raises UsageError where it cannot."""
    if len(name) > LONGEST_ID or not re.fullmatch(ENVIRONMENT_ID, name):
        hint = "use small letters, and digits and dots after dashes, such as torch-1.0"
        raise UsageError(Problem(f"{name[: LONGEST_ID + 1]!r} cannot name an environment", hint=hint))
    return name


def _identifier(kind: Kind, text: str) -> str:
    """Return a text as an id of an environment.

    >>> _identifier("python", "3.11.9"), _identifier("python", "My_Env2.0"), _identifier("image", "pytorch:2.9.1")
    ('python-3.11.9', 'my-env2.0', 'pytorch-2.9.1')
    """
    parts = [re.sub(r"\.+", ".", part).strip(".") for part in re.split(r"[^a-z0-9.]+", text.lower())]
    parts = [part for part in parts if part]
    if not parts or not parts[0][0].isalpha():
        parts = [kind, *parts]
    parts[0] = parts[0].replace(".", "-")
    return "-".join(parts)[:LONGEST_ID].rstrip("-.")


def with_ids(selectors: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return selectors with the ids of the interpreters and images that they name; others as they are.

    >>> with_ids(["python:/opt/conda/envs/a/bin/python@env:A=1", "torch-1.0"])
    ['a@env:A=1', 'torch-1.0']
    """
    parts = [split_existing(selector) for selector in selectors]
    ids = existing_ids([word for _, word, _ in parts if word is not None], taken)
    return [f"{mark}{ids[word] if word else ''}{rest}" for mark, word, rest in parts]


def portable(text: str) -> str:
    """Return an argument of a command without the home folder of this user and without the folder that it is typed in.

    >>> portable("--rounds"), portable("a=python:/opt/a/bin/python@env:A=1")
    ('--rounds', 'a=python:/opt/a/bin/python@env:A=1')
    """
    mark, word, rest = split_existing(text)
    if word is None or word.kind != "python":
        return shortened(text)
    return f"{mark}{word.name}{'=' if word.name else ''}{word.word}{rest}"
