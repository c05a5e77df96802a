"""Writes samples to Parquet and CSV files, and reads them back."""

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.errors import Problem, RecordError, UsageError, file_problem
from runner.core.files import write_output
from runner.core.text import printable

TEXT_COLUMNS = (
    "run",
    "cell",
    "environment",
    "framework",
    "release",
    "implementation",
    "workload",
    "case",
    "phase",
    "precision",
    "backend",
    "device",
)
DISTURBED = "disturbed"
COLUMNS = (*TEXT_COLUMNS, "round", "iteration", "seconds", "turn", "turns_with", "lead", DISTURBED)
"""The columns of the samples.

``iteration`` counts from 0 in each round, and so does ``turn``; ``seconds`` is one iteration's time. Cells with the
same ``turns_with`` in a round took turns with each other; it is empty without turns, and the turn is then 0. ``lead``
has the seconds of the call before the first iteration of a turn, which is no sample; it is missing elsewhere.
``disturbed`` is true for the samples of a round that other programs disturbed and that was measured again: they do not
count.
"""
LATER_COLUMNS: Mapping[str, Any] = {"turn": 0, "turns_with": "", "lead": math.nan, DISTURBED: False}
"""Columns that files of older versions lack, with the value of a sample without turns that counts."""

ROWS_AT_ONCE = 50_000
"""Rows that are converted to CSV at a time: their text is repeated in memory."""


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that spreadsheets compute (https://owasp.org/www-community/attacks/CSV_Injection)."""


def csv_text(text: str) -> str:
    """Return text from outside for a cell of a CSV file: it can be seen, and no spreadsheet takes it for a formula.

    >>> csv_text("=cmd|' /C calc'!A0"), csv_text("2.4.6"), csv_text("-1.5")
    ("'=cmd|' /C calc'!A0", '2.4.6', '-1.5')
    """
    if not text.startswith(FORMULA) or _is_number(text):
        return printable(text)
    return "'" + printable(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isprintable()


def _with_csv_text(samples: pd.DataFrame) -> pd.DataFrame:
    """Return samples whose texts are ``csv_text``; columns without such a text are not copied."""
    for name in samples.columns:
        column = samples[name]
        if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == object:
            texts = {text: csv_text(text) for text in column.unique() if isinstance(text, str)}
            if any(text != safe for text, safe in texts.items()):
                samples = samples.assign(**{str(name): column.astype(object).replace(texts)})
    return samples


def to_csv(samples: pd.DataFrame) -> bytes:
    """Return samples as CSV with a header line."""
    import pyarrow as pa
    from pyarrow import csv

    stream = io.BytesIO(",".join(samples.columns).encode() + b"\n")
    stream.seek(0, io.SEEK_END)
    samples = _with_csv_text(samples)
    types = {pa.float64(): pa.float64(), pa.int64(): pa.int64()}
    for start in range(0, len(samples), ROWS_AT_ONCE):
        table = pa.Table.from_pandas(samples.iloc[start : start + ROWS_AT_ONCE], preserve_index=False)
        plain = pa.schema([(column.name, types.get(column.type, pa.string())) for column in table.schema])
        options = csv.WriteOptions(include_header=False, quoting_style="needed")
        csv.write_csv(table.cast(plain), stream, options)
    return stream.getvalue()


def to_parquet(samples: pd.DataFrame) -> bytes:
    """Return samples as Parquet, with a checksum of each page, which ``read`` verifies."""
    stream = io.BytesIO()
    samples.to_parquet(stream, index=False, write_page_checksum=True)
    return stream.getvalue()


def write(samples: pd.DataFrame, path: Path) -> None:
    """Write samples atomically to a file, in the format of its suffix.

    Raises:
        UsageError: the suffix is neither ``.parquet`` nor ``.csv``, or the file cannot be written.
    """
    formats = {".parquet": to_parquet, ".csv": to_csv}
    if path.suffix not in formats:
        message = f"{path.name!r} ends in neither '.parquet' nor '.csv'"
        raise UsageError(Problem(message, hint="name it samples.parquet"))
    content = formats[path.suffix](samples)
    try:
        write_output(path, content)
    except OSError as error:
        raise UsageError(file_problem(error, path)) from error


def read(path: Path) -> pd.DataFrame:
    """Read the samples from a file that ``write`` made, with the columns ``COLUMNS`` and the same types.

    Raises:
        RecordError: it cannot be read, or lacks a column.
    """
    if not path.is_file():
        reason = "it is not a regular file" if path.exists() else "there is no such file"
        raise RecordError(Problem(f"{path} cannot be read: {reason}"))
    try:
        parquet = path.suffix == ".parquet"
        frame = pd.read_parquet(path, page_checksum_verification=True) if parquet else _read_csv(path)
    except (OSError, ValueError) as error:
        raise RecordError(Problem(f"{path} cannot be read: {error}")) from error
    frame = frame.assign(**{name: value for name, value in LATER_COLUMNS.items() if name not in frame.columns})
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise RecordError(
            Problem(
                f"{path} lacks the columns {', '.join(missing)}", hint="`runner export -o samples.parquet` writes them"
            )
        )
    numbers = {"round": "int64", "iteration": "int64", "seconds": "float64", "turn": "int64", "lead": "float64"}
    numbers[DISTURBED] = "bool"
    try:
        return frame[list(COLUMNS)].astype({**dict.fromkeys((*TEXT_COLUMNS, "turns_with"), "category"), **numbers})
    except (TypeError, ValueError) as error:
        raise RecordError(Problem(f"{path} is damaged: {error}")) from error


def _read_csv(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv

    types = {
        **dict.fromkeys((*TEXT_COLUMNS, "turns_with"), pa.string()),
        **dict.fromkeys(("round", "iteration", "turn"), pa.int64()),
        **dict.fromkeys(("seconds", "lead"), pa.float64()),
        DISTURBED: pa.bool_(),
    }
    frame: pd.DataFrame = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types)).to_pandas()
    return frame
