"""A copy of the tables of a large run, in its folder: reading 100,000 files of JSON takes seconds.

The copy saves parsing, not checking. It counts only if the journal, the facts of the machine and the environments, and
this program are those that it was made from, and ``read`` reads every record that it stands for and compares it with
its checksum in the journal. If anything differs, the records are read as if there were no copy, so damage has the same
sentence with a copy as without one. A copy can be removed at any time. See ``docs/decisions/0051-copies-of-tables.md``.

The file holds the SHA-256 of what follows it, and three Arrow streams
(https://arrow.apache.org/docs/format/Columnar.html): the lines of the journal, the good records, and the failed ones.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from runner.analysis.arrow_columns import array_of, column_of, lists_of, values_of
from runner.analysis.model import Turns
from runner.analysis.tables import ROUND_COLUMNS, Tables, samples_of
from runner.core.facts import VALUE_COLUMNS
from runner.core.files import read_bounded, write_whole
from runner.store.checksums import have_checksums
from runner.store.documents import JOURNAL
from runner.store.journal import MAX_BYTES as MAX_JOURNAL_BYTES
from runner.store.journal import Entry, Journal
from runner.store.run import MAX_RECORD_BYTES, Run

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "tables.arrow"
MIN_RECORDS = 5_000
"""Records from which a run gets a copy; fewer are read in less than half a second."""
MAX_BYTES = 4 << 30
DIGEST_BYTES = 32
LISTS = ("samples", "turns", "turns_name")
"""Columns of the good records that are not columns of their table."""
SOURCES = (
    *("analysis/table_copy.py", "analysis/arrow_columns.py", "analysis/tables.py", "analysis/model.py"),
    *("core/facts.py", "core/json.py"),
    *("core/model/cells.py", "store/run.py", "store/samples.py", "store/journal.py", "store/records.py"),
    *("core/fact_types.py", "store/event_shapes.py", "store/shapes.py", "store/documents.py"),
)
"""Files of this program that decide what the tables of records hold: a copy by others is not read."""


class Copy(NamedTuple):
    """What the records and the journal of a run hold."""

    journal: Journal
    tables: Tables


def key_of(run: Run, machine: Mapping[str, Any], environments: Mapping[str, Any]) -> bytes:
    """Return what a copy of a run depends on, as a digest; raises OSError if the journal cannot be read.

    Args:
        run: the run.
        machine: facts about its machine, for records that lack them.
        environments: environment id -> facts about it, likewise.
    """
    facts = json.dumps([machine, environments], sort_keys=True).encode()
    digest = hashlib.sha256(_program() + hashlib.sha256(facts).digest())
    digest.update(read_bounded(run.path / JOURNAL, MAX_JOURNAL_BYTES))
    return digest.digest()


@cache
def _program() -> bytes:
    """Return a digest of the source of ``SOURCES``."""
    package = resources.files("runner")
    return hashlib.sha256(b"".join((package / name).read_bytes() for name in SOURCES)).digest()


def read(run: Run, machine: Mapping[str, Any], environments: Mapping[str, Any]) -> Copy | None:
    """Return the copy of a run; None if there is none, it is of something else, or a record of it was changed."""
    try:
        content = read_bounded(run.path / FILE, MAX_BYTES)
        copy = _decoded(content, key_of(run, machine, environments))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # a file that something else wrote
        return None
    if copy is None:
        return None
    checksums = {entry.file: entry.sha256 for entry in copy.journal.counting()}
    return copy if have_checksums(run.path, checksums, MAX_RECORD_BYTES) else None


def write(run: Run, key: bytes, copy: Copy) -> None:
    """Write the copy of a large run without damage; a folder that cannot be written has none.

    Args:
        run: the run.
        key: the result of ``key_of`` before its records were read.
        copy: its journal, whose lines all have the checksum of their record, and its tables.
    """
    with suppress(OSError, ValueError):
        write_whole(run.path / FILE, _encoded(copy, key))


def is_worth_it(journal: Journal) -> bool:
    """Return whether a run is large, and each of its records has a checksum that a copy can be compared with."""
    is_large = len(journal.entries) >= MIN_RECORDS
    return is_large and not journal.warnings and all(entry.sha256 for entry in journal.entries)


def _encoded(copy: Copy, key: bytes) -> bytes:
    import pyarrow as pa

    journal, tables = copy
    entries = dict(zip(Entry._fields, zip(*journal.entries, strict=True), strict=True))
    lines = {name: pa.array(column) for name, column in entries.items()}
    lines["cell"] = lines["cell"].dictionary_encode()
    rest = {"canary": journal.canary, "header": journal.header, "skipped": journal.skipped, "ended": journal.ended}
    good = {name: array_of(name, tables.rounds[name]) for name in tables.rounds.columns if name != "turns"}
    sizes = tables.rounds["iterations"].to_numpy()
    good["samples"] = lists_of(tables.samples["seconds"].to_numpy(), sizes)
    turns = tables.rounds["turns"].tolist()
    good["turns_name"] = pa.array([each and each.name for each in turns], pa.string()).dictionary_encode()
    good["turns"] = pa.array([each and each.medians for each in turns], pa.list_(pa.float64()))
    bad = {str(name): array_of(str(name), column) for name, column in tables.failures.items()}
    bad["reason"] = pa.array(tables.failures["reason"].tolist(), pa.string())
    stream = io.BytesIO()
    for columns, metadata in ((lines, {"key": key.hex(), "rest": json.dumps(rest)}), (good, {}), (bad, {})):
        table = pa.table(columns).replace_schema_metadata(metadata)
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
    content = stream.getvalue()
    return hashlib.sha256(content).digest() + content


def _decoded(content: bytes, key: bytes) -> Copy | None:
    """Return a copy; None if it is of something else; raises ValueError and others if the file is not a copy."""
    import pyarrow as pa

    view = memoryview(content)
    if hashlib.sha256(view[DIGEST_BYTES:]).digest() != content[:DIGEST_BYTES]:
        return None
    source = pa.BufferReader(pa.py_buffer(view[DIGEST_BYTES:]))
    lines, *tables = (_read_stream(source) for _ in range(3))
    metadata = lines.schema.metadata
    if metadata[b"key"] != key.hex().encode():
        return None
    return Copy(_journal(lines, json.loads(metadata[b"rest"])), _tables(*tables))


def _read_stream(source: "pa.BufferReader") -> "pa.Table":
    import pyarrow as pa

    with pa.ipc.open_stream(source) as reader:
        return reader.read_all().combine_chunks()


def _journal(lines: "pa.Table", rest: Mapping[str, Any]) -> Journal:
    entries = zip(*(values_of(lines[name]) for name in Entry._fields), strict=True)
    return Journal(
        entries=tuple(map(Entry._make, entries)),
        header=rest["header"],
        canary=tuple(map(tuple, rest["canary"])),
        skipped=rest["skipped"],
        ended=rest["ended"],
    )


def _tables(good: "pa.Table", bad: "pa.Table") -> Tables:
    columns = {name: column_of(name, good[name]) for name in good.column_names if name not in LISTS}
    columns["turns"] = pd.Series(_turns(good), dtype=object)
    rounds = pd.DataFrame(columns)
    times = good["samples"].combine_chunks().flatten().to_numpy()
    return Tables(
        samples=samples_of(rounds, times, rounds["iterations"].to_numpy()),
        rounds=rounds[[*ROUND_COLUMNS, "seconds", "iterations", "turns", *VALUE_COLUMNS]],
        failures=pd.DataFrame(
            {
                name: bad[name].to_pylist() if name == "reason" else column_of(name, bad[name])
                for name in bad.column_names
            }
        ),
    )


def _turns(good: "pa.Table") -> list[Turns | None]:
    """Return the turns of each good record."""
    lists = good["turns"].combine_chunks()
    medians, sizes = lists.flatten().to_numpy().tolist(), lists.value_lengths().fill_null(0).to_numpy().tolist()
    names = values_of(good["turns_name"])
    if len({*sizes}) == 1 and None not in names:
        return list(map(Turns._make, zip(names, zip(*[iter(medians)] * sizes[0], strict=True), strict=True)))
    turns, begin = list[Turns | None](), 0
    for name, size in zip(names, sizes, strict=True):
        turns.append(None if name is None else Turns(name, tuple(medians[begin : begin + size])))
        begin += size
    return turns
