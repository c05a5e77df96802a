"""What must not leave the machine is replaced in every text of the folder: home, user, host, ids of GPUs."""

import getpass
import hashlib
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

GPU_ID = re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
COMMON = {"root", "user", "localhost", "runner", "admin", "ubuntu", "test", "host", "gpu", "cuda", "docker", "build"}
"""Names that say nothing about anybody, and are words of the page."""
TEXTS = {".csv", ".html", ".json", ".jsonl", ".log", ".md", ".txt"}


def hashed(name: str) -> str:
    """Return 8 hexadecimal digits that stand for a name: the same name, the same digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def names() -> Mapping[str, str]:
    """Return what is replaced by what on this machine: the longest texts first."""
    here = Path(__file__).parents[2]
    replaced = {str(here): "REPOSITORY", str(Path.home()): "~"}
    host, user = platform.node(), getpass.getuser()
    if host and host not in COMMON:
        replaced[host] = f"host-{hashed(host)}"
    if user not in COMMON:
        replaced[user] = "USER"
    return dict(sorted(replaced.items(), key=lambda pair: -len(pair[0])))


def cleaner(replaced: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces names, as complete words, and the ids of GPUs.

    >>> cleaner({"/home/ann": "~", "ann": "USER"})("/home/ann/x of ann, annex")
    '~/x of USER, annex'
    """
    words = "|".join(map(re.escape, replaced))
    pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])") if words else None

    def clean(text: str) -> str:
        text = GPU_ID.sub(lambda match: f"{match[1]}-{hashed(match[0])}", text)
        return pattern.sub(lambda match: replaced[match[0]], text) if pattern else text

    return clean


def clean_values(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401
    """Return JSON values with every text cleaned; keys are ours, and stay.

    >>> clean_values({"ann": ["ann", 1]}, cleaner({"ann": "USER"}))
    {'ann': ['USER', 1]}
    """
    if isinstance(value, dict):
        return {key: clean_values(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(item, clean) for item in value]
    return clean(value) if isinstance(value, str) else value


def clean_folder(folder: Path, clean: Callable[[str], str]) -> None:
    """Clean every text file below a folder in place."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in TEXTS:
            path.write_text(clean(path.read_text("utf-8", errors="replace")), "utf-8")
