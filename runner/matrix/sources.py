"""How something is built for one device: from an image, or from packages; on x86_64 and on aarch64."""

import re
from typing import Annotated

from pydantic import Field

from runner.matrix.fields import Bytes, Image, LockPath, PackageRequirement, Part, Text, WebAddress


class _Build(Part):
    base: Image | None = None
    """The Docker image to build on; by default python:<python>-slim."""
    lock: LockPath | None = None
    """The file with the requirements and their hashes, below the folder of the matrix file; `runner lock` writes it."""
    requirements: Annotated[tuple[PackageRequirement, ...], Field(strict=False)] = ()
    """The requirements that `runner lock` resolves: names and versions (PEP 508), without paths and addresses."""
    follow: PackageRequirement | None = None
    """The releases of a package of `requirements` that nights follow, such as "torch>=2,<3": `runner nightly` locks and
    builds each new release, and measures it. Other commands use the `lock`."""
    index: WebAddress | None = None
    """An extra package index; the lock names it."""
    find_links: WebAddress | None = None
    """A page with links to wheels that no package index has."""
    cuda: Text | None = None
    """The CUDA version in the packages or the image, such as "9.0"; leave it out if there is none."""
    cudnn: Text | None = None
    """The cuDNN version in them, such as "7.1"."""
    download_bytes: Bytes | None = None
    """The approximate size of the download in bytes, announced before anything is fetched."""
    disk_bytes: Bytes | None = None
    """The approximate size on disk in bytes, once it is built."""


class Aarch64(_Build):
    """How to build an environment or a variant for machines with the architecture aarch64 (arm64)."""

    image: Image | None = None
    """An image to pull and use unchanged, instead of building one."""


class Source(_Build):
    """What an environment and its variants have in common."""

    aarch64: Aarch64 | None = None
    """How to build it for machines with the architecture aarch64 (arm64): the same keys, of which only `base` has the
    value of x86_64 where it is left out. Without it, `requirements` without CUDA are resolved for aarch64 where the
    environment is named, and everything else is for x86_64 alone."""


class Variant(Source):
    """How to build an environment for a device, cpu or cuda; several for cuda have different CUDA versions."""

    image: Image | None = None
    """An image to pull and use unchanged, instead of building one."""

    @property
    def builds(self) -> "tuple[Variant, ...]":
        """The build for x86_64, and the one for aarch64 where that has keys of its own."""
        return (self,) if self.aarch64 is None else (self, self._with_keys(self.aarch64))

    def for_aarch64(self) -> "Variant | None":
        """Return the build for aarch64; None where there is one for x86_64 alone.

        Where nothing is written for aarch64, it has the same requirements and no lock.
        """
        if self.aarch64 is not None:
            return self._with_keys(self.aarch64)
        if self.image or self.find_links or self.cuda or not self.requirements:
            return None
        return self.model_copy(update={"lock": None, "follow": None})

    def _with_keys(self, keys: Aarch64) -> "Variant":
        values = {name: getattr(keys, name) for name in Aarch64.model_fields}
        return self.model_copy(update={**values, "base": keys.base or (None if keys.image else self.base)})

    @property
    def is_locked_when_named(self) -> bool:
        """Whether it names no lock, and its requirements can be resolved by their indexes alone.

        What nights follow has a lock of each night, and no other one.
        """
        return bool(self.requirements) and not (self.lock or self.image or self.find_links or self.follow)


def cuda_key(variant: Variant) -> tuple[int, ...]:
    """Return what variants are ordered by: the numbers of their CUDA version; empty without one."""
    return tuple(int(number) for number in re.findall(r"\d+", variant.cuda or ""))
