"""Facts about CUDA, drivers, cuDNN, GPUs and images: the rows of the other CSV files of this folder.

toolkits.csv      CUDA toolkits: the GPUs that they generate code for, and the drivers that they need
generations.csv   generations of GPUs: the drivers that support them
drivers.csv       driver branches: the CUDA version that they include
cudnn.csv         cuDNN releases: the oldest GPUs that they support
precisions.csv    precisions that not every GPU computes: the oldest GPUs that do
bases.csv         images: their C library, their cuDNN and additional GPU code
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from runner.catalog.hardware.tables import HardwareFact, capabilities, fact, rows
from runner.catalog.hardware.versions import Capability, parse_capability, same_series, version_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit(HardwareFact):
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
class Generation(HardwareFact):
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
class Branch(HardwareFact):
    """A driver branch, such as ``580``, with the CUDA version that it includes."""

    branch: str
    cuda: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cudnn(HardwareFact):
    """The GPUs that cuDNN supports from a release on.

    Attributes:
        since: the first release that this holds for.
        oldest: the lowest compute capability that it supports.
        last: the last release that supported older GPUs; empty if there is none.
        newest: the highest compute capability that it has code for; None if a newer one is not known to fail.
    """

    since: str
    oldest: Capability
    last: str
    newest: Capability | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionSupport(HardwareFact):
    """A precision that only newer GPUs compute, with the lowest compute capability that does."""

    precision: str
    oldest: Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseImage(HardwareFact):
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


@cache
def toolkits() -> tuple[Toolkit, ...]:
    """Return every CUDA toolkit, the oldest first."""
    return tuple(
        Toolkit(
            cuda=row["cuda"],
            sass=capabilities(row["sass"]),
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
        known = capabilities(row["capabilities"])
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
    newest = parse_capability(row["newest"]) if row["newest"] else None
    return Cudnn(
        since=row["since"], oldest=parse_capability(row["oldest"]), last=row["last"], newest=newest, **fact(row)
    )


@cache
def precision_support(precision: str) -> PrecisionSupport | None:
    """Return the GPUs that compute in a precision; None if all of them do."""
    for row in rows("precisions.csv"):
        if row["precision"] == precision:
            return PrecisionSupport(precision=precision, oldest=parse_capability(row["oldest"]), **fact(row))
    return None


@cache
def base_image(image: str) -> BaseImage | None:
    """Return the contents of an image by its name; None if unknown."""
    for row in rows("bases.csv"):
        if fnmatchcase(image, row["image"]):
            texts: dict[str, Any] = {name: row[name] for name in ("image", "glibc", "cudnn")}
            return BaseImage(sass=capabilities(row["sass"]), ptx=capabilities(row["ptx"]), **texts, **fact(row))
    return None
