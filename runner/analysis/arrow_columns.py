"""Columns of tables as Arrow arrays, and back: categories, and facts of any type, become dictionaries."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from runner.core.facts import VALUE_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


def array_of(name: str, column: "pd.Series[Any]") -> "pa.Array[Any]":
    """Return a column as an Arrow array: categories and facts of any type as dictionaries, of facts as JSON."""
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, texts = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()))
    if name in VALUE_COLUMNS:
        codes_by_text: dict[str, int] = {}
        codes = np.array([codes_by_text.setdefault(text, len(codes_by_text)) for text in _json(column)], np.int32)
        return pa.DictionaryArray.from_arrays(codes, pa.array(codes_by_text, pa.string()))
    return pa.array(column.to_numpy())


def _json(values: "pd.Series[Any]") -> Iterator[str]:
    """Yield each value as JSON; most facts have few values, and those that can be hashed are converted once."""
    texts: dict[tuple[type, object], str] = {}
    for value in values.tolist():
        if isinstance(value, (dict, list)):
            yield json.dumps(value)
            continue
        kind = type(value), repr(value)  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
        if kind not in texts:
            texts[kind] = json.dumps(value)
        yield texts[kind]


def lists_of(values: "np.ndarray[Any, Any]", sizes: "np.ndarray[Any, Any]") -> "pa.Array[Any]":
    """Return consecutive values as lists of these sizes."""
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return pa.LargeListArray.from_arrays(offsets, values)


def column_of(name: str, column: "pa.ChunkedArray[Any]") -> Any:  # noqa: ANN401  what a table takes as a column
    """Return a column as ``array_of`` got it."""
    import pyarrow as pa

    array = column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        return array.to_numpy()
    codes, texts = array.indices.to_numpy(), array.dictionary.to_pylist()
    if name not in VALUE_COLUMNS:
        return pd.Categorical.from_codes(codes, categories=pd.Index(texts))
    values_by_code = np.empty(len(texts), dtype=object)
    values_by_code[:] = [json.loads(text) for text in texts]
    return pd.Series(values_by_code[codes], dtype=object)


def values_of(column: "pa.ChunkedArray[Any]") -> list[Any]:
    """Return a column as Python values; ``to_pylist`` takes four times as long."""
    import pyarrow as pa

    if column.null_count:
        return list(column.to_pylist())
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        texts = array.dictionary.to_pylist()
        return [texts[code] for code in array.indices.to_numpy().tolist()]
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values
