"""What a GPU could compute and move in a second, by its maker's data sheet."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from runner.catalog.hardware.facts import Fact, fact, rows

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(Fact):
    """A board.

    Attributes:
        operations: precision -> operations in a second, dense, a multiply and an add counted as two; those of fp16 and
            bf16 add in fp32, those of int8 in int32. A precision that it has no units for is missing.
        bandwidth: bytes in a second to and from its memory.

    All at the highest clock that the maker quotes, which need not be the same for all precisions.
    """

    gpu: str
    operations: Mapping[str, float]
    bandwidth: float


@cache
def peak(name: str) -> Peak | None:
    """Return the peak of a GPU by its name in NVML; None for one that is not known, as a slice of a board is not.

    >>> peak("NVIDIA H200").operations["bf16"]
    989000000000000.0
    """
    model = name.removeprefix("NVIDIA ")  # drivers before 470 leave the maker out
    for row in rows("peaks.csv"):
        if model in row["gpu"].split(";"):
            return Peak(
                gpu=model,
                operations={name: float(row[name]) * 1e12 for name in PRECISIONS if row[name]},
                bandwidth=float(row["bandwidth"]) * 1e9,
                **fact(row),
            )
    return None
