"""The known builds of framework releases with the GPU code in them: the rows of ``builds.csv``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from runner.catalog.hardware.tables import HardwareFact, capabilities, fact, rows, words
from runner.catalog.hardware.versions import Capability, parse_capability, series

TOOLKIT = "toolkit"  # in the column sass: compiles its own code at run time, for every GPU that its CUDA supports


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(HardwareFact):
    """A package, or an image, of a framework release.

    Attributes:
        framework: as in the matrix.
        package: the name of the package for pip.
        release: its release.
        variant: which of several builds of a release, such as ``cu126``; ``cpu`` has no GPU code.
        python: the versions of Python that it has a wheel for; empty if any will do.
        cuda: the CUDA version that it was built with; empty if it uses the CUDA that is installed.
        cudnn: the cuDNN version that it was built with, or needs.
        sass: the compute capabilities that it has native code for.
        ptx: the compute capabilities that it has intermediate code for.
        compiles: whether it compiles its own code at run time, for every GPU that its CUDA supports.
        glibc: the oldest C library that it runs on; empty if unknown.
        fails_from: the compute capability from which its intermediate code is known to fail; None if there is none.
        unprobed_from: the compute capability from which nobody has seen it run, with evidence against it; None if
            there is none.
        requirement: the requirement that makes pip install it; empty if it is not installed by pip.
        note: a clause with what else the user should know.
    """

    framework: str
    package: str
    release: str
    variant: str
    python: tuple[str, ...]
    cuda: str
    cudnn: str
    sass: tuple[Capability, ...]
    ptx: tuple[Capability, ...]
    compiles: bool
    glibc: str
    fails_from: Capability | None
    unprobed_from: Capability | None
    requirement: str
    note: str

    @property
    def name(self) -> str:
        """The name of the build in messages, such as ``torch 1.0.0 for CUDA 9.0``."""
        return f"{self.package} {self.release}" + (f" for CUDA {series(self.cuda)}" if self.cuda else "")


@cache
def builds() -> tuple[Build, ...]:
    """Return every known build, in the order of the file: by framework, then by release."""
    return tuple(map(_build, rows("builds.csv")))


_BUILD_TEXTS = ("framework", "package", "release", "variant", "cuda", "cudnn", "glibc", "requirement", "note")


def _build(row: Mapping[str, str]) -> Build:
    texts: dict[str, Any] = {name: row[name] for name in _BUILD_TEXTS}
    compiles = row["sass"] == TOOLKIT
    return Build(
        python=words(row["python"]),
        sass=() if compiles else capabilities(row["sass"]),
        ptx=capabilities(row["ptx"]),
        compiles=compiles,
        fails_from=_optional_capability(row["fails_from"]),
        unprobed_from=_optional_capability(row["unprobed_from"]),
        **texts,
        **fact(row),
    )


def _optional_capability(text: str) -> Capability | None:
    return parse_capability(text) if text else None
