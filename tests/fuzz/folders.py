"""The targets ``folder`` and ``document``: a stored run with changed files, through every command that reads runs.

``document`` changes the plan, the cases and the header of a run only, and resumes it.

An input is ``{"view": NAME, "changes": [[FILE, KIND, ...], ...]}``. Kinds: ``edit`` (an edit of ``tests.fuzz.edits``),
``text`` (other content), ``cut`` (at a byte), ``byte`` (another byte at a position), ``remove``, ``folder``, and
``sign``, which makes the header agree with the changed plan. Checksums agree with edits, and not with other changes.
Files are those of the run, ``nights/...`` and ``anchors.json`` (of the reports folder).
"""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.plan.document import fingerprint
from tests.fuzz.edits import edited
from tests.fuzz.examples import EARLIER, TONIGHT, anchors, folder, night
from tests.fuzz.values import to_json
from tests.fuzz.views import VIEWS

OF_REPORTS = ("nights/", "anchors.json")
MEMORY = Path("/dev/shm")


def stored_files(view: str) -> dict[str, Any]:
    """Return the files that an input of a view can change: name -> JSON document, or a list of them."""
    run = EARLIER if view == "nightly" else TONIGHT
    return {**folder(run), f"nights/{EARLIER}.json": night(), "anchors.json": anchors()}


def changed(files: Mapping[str, Any], changes: Sequence[Sequence[Any]]) -> dict[str, bytes | None]:
    """Return name -> content of files with changes; None stands for a folder."""
    documents = dict(files)
    for name, kind, *arguments in changes:
        if name in documents and kind == "edit":
            documents[name] = edited(documents[name], [arguments])
        elif kind == "sign":
            documents["journal.jsonl"] = _signed(documents)
    contents: dict[str, bytes | None] = dict(_sealed(documents))
    for name, kind, *arguments in changes:
        content = contents.get(name)
        if kind == "remove":
            contents.pop(name, None)
        elif kind == "folder":
            contents[name] = None
        elif kind in {"text", "cut", "byte"} and content is not None:
            contents[name] = _with_bytes(content, kind, arguments)
    return contents


def _sealed(documents: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the content of documents; where they have checksums, those agree with the changes."""
    contents = {name: _text(document).encode() for name, document in documents.items() if not name.endswith(".jsonl")}
    for name in documents.keys() - contents.keys():
        lines = documents[name] if isinstance(documents[name], list) else [documents[name]]
        for number, line in enumerate(lines):
            if isinstance(line, dict) and "sha256" in line and str(line.get("file")) in contents:
                digest = hashlib.sha256(contents[str(line["file"])]).hexdigest()
                lines = [*lines[:number], {**line, "sha256": digest}, *lines[number + 1 :]]
        contents[name] = "".join(map(_text, lines)).encode()
    return contents


def _text(document: Any) -> str:
    """Return a document as ``runner.store`` writes it; a ``checksum`` field is recomputed over the text before it."""
    if not isinstance(document, dict) or "checksum" not in document:
        return to_json(document) + "\n"
    start = to_json({name: value for name, value in document.items() if name != "checksum"})[:-1]
    digest = hashlib.sha256(start.encode()).hexdigest()[: len(str(document["checksum"])) or 1]
    return f'{start}, "checksum": "{digest}"}}\n'


def _signed(documents: Mapping[str, Any]) -> Any:
    plan, cases, journal = documents["plan.json"], documents["cases.json"], documents["journal.jsonl"]
    try:
        kept = {name: value for name, value in plan.items() if name not in {"version", "checksum"}}
        digest = fingerprint(kept, cases["cases"])
        return edited(journal, [["set", [0, "plan"], digest]])
    except (LookupError, TypeError, AttributeError, ValueError):
        return journal


def _with_bytes(content: bytes, kind: str, arguments: Sequence[Any]) -> bytes:
    if kind == "text":
        return str(arguments[0]).encode("utf-8", "surrogateescape")
    position = arguments[0] % max(len(content), 1)
    return content[:position] + (b"" if kind == "cut" else bytes([arguments[1]]) + content[position + 1 :])


def write(reports: Path, run: str, contents: Mapping[str, bytes | None]) -> None:
    """Write the files of a run, and those of the reports folder."""
    for name, content in contents.items():
        path = reports / name if name.startswith(OF_REPORTS) else reports / "runs" / run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content)


def run_folder(value: Mapping[str, Any]) -> None:
    """Write a folder with changes, and show what a command shows of it."""
    view = value["view"]
    contents = changed(stored_files(view), value["changes"])
    reports = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        write(reports, EARLIER if view == "nightly" else TONIGHT, contents)
        if view == "nightly":
            write(reports, TONIGHT, changed(folder(TONIGHT), ()))
        VIEWS[view](reports)
    finally:
        shutil.rmtree(reports)
