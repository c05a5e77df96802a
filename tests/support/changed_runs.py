"""Change the files of a run by hand, with the checksums that they would have if the runner had written them so."""

import json
import re

from runner.store.checksums import file_checksum, with_checksum
from runner.store.run import Run

CHECKSUM = re.compile(r', "checksum": "[0-9a-f]{16}"(?=\}\s*$)')
FILE = re.compile(r'"file": "(records/[^"/]+)"')
SHA256 = re.compile(r'"sha256": "[0-9a-f]{64}"')


def reseal(run: Run) -> None:
    """Give all files of a run that was changed the checksums that fit."""
    for path in run.path.glob("*.json"):
        path.write_text(_resealed(path.read_text("utf-8")), "utf-8")
    journal = run.path / "journal.jsonl"
    lines = journal.read_text("utf-8").split("\n")
    journal.write_text("\n".join(_resealed(_with_sha256(line, run)).rstrip("\n") for line in lines), "utf-8")


def unsealed(line: str) -> str:
    """Return a line of a journal as version 2 had it: without number and checksums."""
    bare = CHECKSUM.sub("", line)
    return re.sub(r', "number": [0-9]+|, "sha256": "[0-9a-f]{64}"', "", bare).replace('"version": 3', '"version": 2', 1)


def change_header(run: Run, **fields: object) -> None:
    """Change fields of the first line of a run's journal."""
    path = run.path / "journal.jsonl"
    first, *rest = path.read_text("utf-8").splitlines(keepends=True)
    header = json.loads(CHECKSUM.sub("", first)) | fields
    path.write_text(with_checksum(json.dumps(header)) + "".join(rest), "utf-8")


def _resealed(text: str) -> str:
    bare = CHECKSUM.sub("", text)
    return with_checksum(bare) if bare != text and bare.startswith("{") else text


def _with_sha256(line: str, run: Run) -> str:
    named = FILE.search(line)
    path = run.path / named[1] if named else run.path
    return SHA256.sub(f'"sha256": "{file_checksum(path.read_bytes())}"', line) if path.is_file() else line
