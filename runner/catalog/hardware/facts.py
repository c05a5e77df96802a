"""The facts that rules decide by: rows of the CSV files beside this one, each with its source and how far it is known.

    builds.csv        what a package holds: interpreters, CUDA, cuDNN, native code (SASS) and intermediate code (PTX)
    toolkits.csv      what a CUDA toolkit can make code for, and the drivers it needs
    generations.csv   which drivers drive a generation of GPUs
    drivers.csv       which CUDA a driver branch brings
    cudnn.csv         the oldest GPUs that a cuDNN serves
    bases.csv         the C library, the cuDNN and further code of images
    peaks.csv         what a GPU could compute and move in a second, see ``peaks``

In each file ``source`` names where the row is from, ``status`` how far it was checked, and ``unverified`` the columns
that were not; a sentence that rests on one of these ends in "(unverified)".
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
TOOLKIT = "toolkit"  # in the column sass: compiled when it runs, for all that the CUDA beside it makes code for


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Where something is from; ``unverified`` are the columns that nobody has checked."""

    source: str
    status: str
    unverified: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(Fact):
    """One package, or image, of a framework release.

    Attributes:
        framework: as in the matrix; ``package`` is what pip calls it.
        variant: which of several builds of a release, ``cu126``; ``cpu`` holds no GPU code.
        python: the interpreters there is a wheel for; empty where that does not matter.
        cuda: what it was built with; empty for what takes the CUDA that is beside it.
        cudnn: what it was built with, or needs.
        sass: compute capabilities it holds native code for; ``ptx`` those of its intermediate code.
        compiles: it compiles its own code when it runs, for what its CUDA makes code for.
        glibc: the oldest C library it runs on; empty where that is not known.
        fails_from: the compute capability from which its intermediate code is known not to run.
        unprobed_from: the one from which nobody has seen it run, and something speaks against it.
        requirement: how pip is asked for it.
        note: what else one should know, a clause.
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
        """What sentences call it, ``torch 1.0.0 for CUDA 9.0``."""
        return f"{self.package} {self.release}" + (f" for CUDA {series(self.cuda)}" if self.cuda else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit(Fact):
    """A minor release of CUDA.

    Attributes:
        sass: the compute capabilities it makes native code for.
        driver: the Linux driver that came with it: the oldest that compiles its PTX.
        oldest: the oldest Linux driver that runs its native code: the same before CUDA 11, and from then on the first
            of the major release, which NVIDIA calls minor-version compatibility.
    """

    cuda: str
    sass: tuple[Capability, ...]
    driver: str
    oldest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Fact):
    """GPUs of one architecture.

    Attributes:
        first: the first driver that knows them; empty where that is not known.
        last: the last driver branch that drives them, ``580``; empty where they are still driven.
    """

    name: str
    capabilities: tuple[Capability, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Fact):
    """A driver branch, ``580``, with the CUDA it brings."""

    branch: str
    cuda: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cudnn(Fact):
    """From ``since`` on cuDNN serves GPUs of ``oldest`` and newer; ``last`` is the release before, empty for none."""

    since: str
    oldest: Capability
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Fact):
    """Images by a glob over their names; what is not known, or not beside what the release's build holds, is empty.

    Attributes:
        glibc: their C library.
        cudnn: their cuDNN.
        sass: compute capabilities that their own build of the framework has native code for, beside the usual one's.
        ptx: likewise of intermediate code.
    """

    image: str
    glibc: str
    cudnn: str
    sass: tuple[Capability, ...]
    ptx: tuple[Capability, ...]


def rows(name: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of one of the files."""
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
    """Return the toolkit of a CUDA version, the newest of a bare major one.

    Of a minor release that is not known it is the nearest older one; None where there is none.
    """
    same = [entry for entry in toolkits() if same_series(entry.cuda, cuda)]
    older = [entry for entry in toolkits() if version_numbers(entry.cuda) <= version_numbers(cuda)]
    candidates = same or older
    return candidates[-1] if candidates else None


@cache
def generation(capability: Capability) -> Generation | None:
    """Return the generation of a GPU, None for one that is not known."""
    for row in rows("generations.csv"):
        known = _capabilities(row["capabilities"])
        if capability in known:
            return Generation(name=row["name"], capabilities=known, first=row["first"], last=row["last"], **fact(row))
    return None


@cache
def branch(driver: str) -> Branch | None:
    """Return the branch of a driver, ``580.65.06``; None where it is not known."""
    number = driver.partition(".")[0]
    for row in rows("drivers.csv"):
        if row["branch"] == number:
            return Branch(branch=number, cuda=row["cuda"], **fact(row))
    return None


@cache
def cudnn(version: str) -> Cudnn | None:
    """Return what is known of a cuDNN version, None where nothing is."""
    older = [row for row in rows("cudnn.csv") if version_numbers(row["since"]) <= version_numbers(version)]
    if not older:
        return None
    row = older[-1]
    return Cudnn(since=row["since"], oldest=parse_capability(row["oldest"]), last=row["last"], **fact(row))


@cache
def base(image: str) -> Base | None:
    """Return what is known of an image by its name, None where nothing is."""
    for row in rows("bases.csv"):
        if fnmatchcase(image, row["image"]):
            texts: dict[str, Any] = {name: row[name] for name in ("image", "glibc", "cudnn")}
            return Base(sass=_capabilities(row["sass"]), ptx=_capabilities(row["ptx"]), **texts, **fact(row))
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
    """Return what every row has: where it is from, and how far it was checked."""
    return {"source": row["source"], "status": row["status"], "unverified": frozenset(_words(row["unverified"]))}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ()


def _capability(text: str) -> Capability | None:
    return parse_capability(text) if text else None


def _capabilities(text: str) -> tuple[Capability, ...]:
    return tuple(map(parse_capability, _words(text)))
