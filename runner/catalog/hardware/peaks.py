"""The peak rates of GPUs in arithmetic and memory traffic, from the data sheets of their makers (``peaks.csv``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from runner.catalog.hardware.tables import HardwareFact, fact, rows

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(HardwareFact):
    """The peak rates of a board at the highest clocks that its maker quotes, and the size of its cache.

    Attributes:
        gpu: the name in NVML, without ``NVIDIA``.
        operations: precision -> dense operations per second, where a multiply-add counts as two. fp16 and bf16
            accumulate in fp32, int8 in int32. Precisions without hardware support are missing.
        bandwidth: bytes per second to and from the memory of the board.
        boost_mhz: the clock of the streaming multiprocessors at which ``operations`` are quoted.
        tensor_mhz: the same for all precisions but fp32, where it differs: the maker quotes tensor cores at less.
        l2_bytes: of the cache that all multiprocessors share.
    """

    gpu: str
    operations: Mapping[str, float]
    bandwidth: float
    boost_mhz: float
    tensor_mhz: float | None
    l2_bytes: int

    def quoted_mhz(self, precision: str) -> float:
        """Return the clock at which the peak of a precision is quoted.

        >>> peak("NVIDIA H200").quoted_mhz("fp32"), peak("NVIDIA H200").quoted_mhz("bf16")
        (1980.0, 1830.0)
        """
        return self.tensor_mhz if self.tensor_mhz and precision != "fp32" else self.boost_mhz


@cache
def peak(name: str) -> Peak | None:
    """Return the peak rates of a GPU by its name in NVML; None if unknown, as for a slice (MIG) of a board.

    >>> peak("NVIDIA H200").operations["bf16"]
    989000000000000.0
    """
    model = name.removeprefix("NVIDIA ")  # drivers before 470 leave out the maker
    for row in rows("peaks.csv"):
        if model in row["gpu"].split(";"):
            return Peak(
                gpu=model,
                operations={name: float(row[name]) * 1e12 for name in PRECISIONS if row[name]},
                bandwidth=float(row["bandwidth"]) * 1e9,
                boost_mhz=float(row["boost_mhz"]),
                tensor_mhz=float(row["tensor_mhz"]) if row["tensor_mhz"] else None,
                l2_bytes=int(float(row["l2_mb"]) * 2**20),
                **fact(row),
            )
    return None
