"""Read the facts about builds, CUDA, drivers and GPUs from the CSV files of this folder.

    builds.csv        packages: interpreters, CUDA, cuDNN, native code (SASS) and intermediate code (PTX)
    toolkits.csv      CUDA toolkits: the GPUs that they generate code for, and the drivers that they need
    generations.csv   generations of GPUs: the drivers that support them
    drivers.csv       driver branches: the CUDA version that they include
    cudnn.csv         cuDNN releases: the oldest GPUs that they support
    bases.csv         images: their C library, their cuDNN and additional GPU code
    peaks.csv         GPUs: peak rates, see ``peaks``

In each file ``source`` names the origin of the row, ``status`` how far it was checked, and ``unverified`` the columns
that nobody has checked; a reason that rests on one of these ends in "(unverified)".
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from runner.catalog.hardware.versions import Capability, parse_capability, same_series, series, version_numbers

FOLDER = Path(__file__).parent
TOOLKIT = "toolkit"  # in the column sass: compiles its own code at run time, for every GPU that its CUDA supports


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What every row has.

    Attributes:
        source: where the row is from.
        status: how far it was checked.
        unverified: the columns that nobody has checked.
    """

    source: str
    status: str
    unverified: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(Fact):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit(Fact):
    """A minor release of the CUDA toolkit.

    Attributes:
        cuda: the release, such as ``12.5``.
        sass: the compute capabilities that it generates native code for.
        driver: the Linux driver that it was released with, the oldest that compiles its PTX.
        oldest: the oldest Linux driver that runs its native code. Before CUDA 11 that is ``driver``; since then it is
            the first driver of the major release (minor-version compatibility).
    """

    cuda: str
    sass: tuple[Capability, ...]
    driver: str
    oldest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Fact):
    """The GPUs of one architecture.

    Attributes:
        name: its name, such as ``Volta``.
        capabilities: the compute capabilities of its GPUs.
        first: the first driver that supports them; empty if unknown.
        last: the last driver branch that supports them, such as ``580``; empty if they are still supported.
    """

    name: str
    capabilities: tuple[Capability, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Fact):
    """A driver branch, such as ``580``, with the CUDA version that it includes."""

    branch: str
    cuda: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cudnn(Fact):
    """The GPUs that cuDNN supports from a release on.

    Attributes:
        since: the first release that this holds for.
        oldest: the lowest compute capability that it supports.
        last: the last release that supported older GPUs; empty if there is none.
    """

    since: str
    oldest: Capability
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseImage(Fact):
    """The contents of images; empty if unknown.

    Attributes:
        image: a glob over names of images.
        glibc: the version of their C library.
        cudnn: the version of their cuDNN.
        sass: compute capabilities that their build of the framework has native code for, in addition to the release's.
        ptx: the same for intermediate code.
    """

    image: str
    glibc: str
    cudnn: str
    sass: tuple[Capability, ...]
    ptx: tuple[Capability, ...]


def rows(name: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a CSV file of this folder by its name."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


@cache
def builds() -> tuple[Build, ...]:
    """Return every known build, in the order of the file: by framework, then by release."""
    return tuple(map(_build, rows("builds.csv")))


@cache
def toolkits() -> tuple[Toolkit, ...]:
    """Return every CUDA toolkit, the oldest first."""
    return tuple(
        Toolkit(
            cuda=row["cuda"],
            sass=_capabilities(row["sass"]),
            driver=row["driver"],
            oldest=row["oldest"],
            **fact(row),
        )
        for row in rows("toolkits.csv")
    )


@cache
def toolkit(cuda: str) -> Toolkit | None:
    """Return the toolkit of a CUDA version, or else the nearest older one; None if there is none.

    A major version alone stands for its newest minor release.
    """
    same = [entry for entry in toolkits() if same_series(entry.cuda, cuda)]
    older = [entry for entry in toolkits() if version_numbers(entry.cuda) <= version_numbers(cuda)]
    candidates = same or older
    return candidates[-1] if candidates else None


@cache
def generation(capability: Capability) -> Generation | None:
    """Return the generation of a GPU by its compute capability; None if unknown."""
    for row in rows("generations.csv"):
        known = _capabilities(row["capabilities"])
        if capability in known:
            return Generation(name=row["name"], capabilities=known, first=row["first"], last=row["last"], **fact(row))
    return None


@cache
def branch(driver: str) -> Branch | None:
    """Return the branch of a driver version such as ``580.65.06``; None if unknown."""
    number = driver.partition(".")[0]
    for row in rows("drivers.csv"):
        if row["branch"] == number:
            return Branch(branch=number, cuda=row["cuda"], **fact(row))
    return None


@cache
def cudnn(version: str) -> Cudnn | None:
    """Return the GPUs that a cuDNN version supports; None if unknown."""
    older = [row for row in rows("cudnn.csv") if version_numbers(row["since"]) <= version_numbers(version)]
    if not older:
        return None
    row = older[-1]
    return Cudnn(since=row["since"], oldest=parse_capability(row["oldest"]), last=row["last"], **fact(row))


@cache
def base_image(image: str) -> BaseImage | None:
    """Return the contents of an image by its name; None if unknown."""
    for row in rows("bases.csv"):
        if fnmatchcase(image, row["image"]):
            texts: dict[str, Any] = {name: row[name] for name in ("image", "glibc", "cudnn")}
            return BaseImage(sass=_capabilities(row["sass"]), ptx=_capabilities(row["ptx"]), **texts, **fact(row))
    return None


_BUILD_TEXTS = ("framework", "package", "release", "variant", "cuda", "cudnn", "glibc", "requirement", "note")


def _build(row: Mapping[str, str]) -> Build:
    texts: dict[str, Any] = {name: row[name] for name in _BUILD_TEXTS}
    compiles = row["sass"] == TOOLKIT
    return Build(
        python=_words(row["python"]),
        sass=() if compiles else _capabilities(row["sass"]),
        ptx=_capabilities(row["ptx"]),
        compiles=compiles,
        fails_from=_capability(row["fails_from"]),
        unprobed_from=_capability(row["unprobed_from"]),
        **texts,
        **fact(row),
    )


def fact(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a row that every fact has, as arguments of ``Fact``."""
    return {"source": row["source"], "status": row["status"], "unverified": frozenset(_words(row["unverified"]))}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ()


def _capability(text: str) -> Capability | None:
    return parse_capability(text) if text else None


def _capabilities(text: str) -> tuple[Capability, ...]:
    return tuple(map(parse_capability, _words(text)))
