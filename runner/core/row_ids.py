"""The ids of rows: a test and a metric. The row about the time of a cell has the id of the cell."""

from runner.core.metrics import BY_NAME, TIME

SEPARATOR = "#"


def row_id(cell: str, metric: str = TIME) -> str:
    """Return the id of a row.

    >>> row_id("torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32", "memory")
    'torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32#memory'
    """
    return cell if metric == TIME else f"{cell}{SEPARATOR}{metric}"


def cell_and_metric(row: str) -> tuple[str, str]:
    """Return the id of the cell of a row, and the name of its metric.

    >>> cell_and_metric("torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32#memory")
    ('torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32', 'memory')
    """
    cell, _, metric = row.rpartition(SEPARATOR)
    return (cell, metric) if cell and metric in BY_NAME and metric != TIME else (row, TIME)


def row_title(cell: str, metric: str = TIME) -> str:
    """Return what a heading calls a row: the id of its cell, and the metric unless that is time.

    >>> row_title("torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32", "memory")
    'torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32, peak memory of the steps'
    """
    return cell if metric == TIME else f"{cell}, {BY_NAME[metric].title}"


def cell_of(row: str) -> str:
    """Return the id of the cell of a row."""
    return cell_and_metric(row)[0]
