"""How an environment of ``matrix.yaml`` is built: from an image, or from Python and packages, for one device or two."""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from runner.core.model import Device
from runner.matrix.fields import (
    Bytes,
    EnvironmentId,
    Framework,
    Image,
    LockPath,
    PackageRequirement,
    Part,
    PythonVersion,
    Text,
    VariableName,
    VariableValue,
    VariantName,
    WebAddress,
)


class BrokenRule(NamedTuple):
    """A broken rule about the keys of an environment.

    Attributes:
        key: the key to point at; None points at the environment.
        message: what is wrong, to follow the name of the environment.
        hint: what to do about it.
    """

    key: str | None
    message: str
    hint: str


class _Source(Part):
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


class Variant(_Source):
    """How to build an environment for a device, cpu or cuda; several for cuda have different CUDA versions."""

    image: Image | None = None
    """An image to pull and use unchanged, instead of building one."""

    @property
    def is_locked_when_named(self) -> bool:
        """Whether it names no lock, and its requirements can be resolved by their indexes alone.

        What nights follow has a lock of each night, and no other one.
        """
        return bool(self.requirements) and not (self.lock or self.image or self.find_links or self.follow)


def cuda_key(variant: Variant) -> tuple[int, ...]:
    """Return what variants are ordered by: the numbers of their CUDA version; empty without one."""
    return tuple(int(number) for number in re.findall(r"\d+", variant.cuda or ""))


_SOURCE_KEYS = tuple(_Source.model_fields)


def broken_rules(keys: Mapping[str, object]) -> tuple[BrokenRule, ...]:
    """Return the broken rules about which keys of an environment go together.

    Args:
        keys: the environment as written or as read; None and empty values count as left out.
    """
    present = {name for name, value in keys.items() if value not in (None, (), [], {})}
    rules = []
    if "add" in present and "extends" not in present:
        hint = "write extends: and the environment that they extend, or move them to requirements:"
        rules.append(BrokenRule("add", "adds packages, and extends no environment", hint))
    if not present & {"image", "python", "extends"}:
        rules.append(BrokenRule(None, "needs an image, or a python and what to install", "add image: or python:"))
    elif not present & {"image", "extends", "lock", "requirements", "variants"}:
        hint = "add lock:, requirements: or variants:"
        rules.append(BrokenRule("python", "does not say what to install", hint))
    if {"image", "lock"} <= present:
        rules.append(BrokenRule("lock", "has both an image and a lock", "an image is pulled as it is: remove one"))
    rules += _broken_follow("follow", keys, "") if "variants" not in present else []
    if {"image", "variants"} <= present:
        rules.append(
            BrokenRule("variants", "has both an image and variants", "an image is pulled as it is: remove one")
        )
    elif "variants" in present:
        misplaced = [name for name in _SOURCE_KEYS if name in present]
        rules += [BrokenRule(n, f"has variants, and {n} outside of them", f"move {n} into variants") for n in misplaced]
        rules += _broken_variants(keys["variants"])
    return tuple(rules)


def _broken_follow(key: str, keys: Mapping[str, object], where: str) -> list[BrokenRule]:
    """Return the broken rule where an environment or a variant follows a package that it does not require.

    Args:
        key: the key to point at.
        keys: those of the environment or the variant, as written or as read.
        where: the variant, to follow the name of the environment; empty for the environment.
    """
    follow, requirements = keys.get("follow"), keys.get("requirements")
    if not isinstance(follow, str):
        return []
    if keys.get("image"):
        message = f"{where}follows a package, and an image is pulled as it is"
        return [BrokenRule(key, message, "remove follow: or image:")]
    written = requirements if isinstance(requirements, (list, tuple)) else ()
    names = {package_name(each) for each in written if isinstance(each, str)}
    if package_name(follow) and package_name(follow) not in names:
        message = f"{where}follows {package_name(follow)}, which is not in its requirements"
        return [BrokenRule(key, message, f"add {package_name(follow)} to requirements:")]
    return []


def package_name(requirement: str) -> str:
    """Return the normalized name of the package of a requirement; empty if it cannot be read.

    >>> package_name("Tensorflow_CPU[and-cuda]>=2,<3")
    'tensorflow-cpu'
    """
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""


def _broken_variants(variants: object) -> list[BrokenRule]:
    """Return a rule for each variant that follows what it does not require, or whose CUDA is not that of its key."""
    rules = []
    for name, variant in variants.items() if isinstance(variants, Mapping) else ():
        written = variant if isinstance(variant, Mapping) else dict(variant) if isinstance(variant, Variant) else {}
        rules += _broken_follow("variants", written, f"in the variant {name} ")
        version = str(name).partition("-")[2]
        cuda = variant.get("cuda") if isinstance(variant, Mapping) else getattr(variant, "cuda", None)
        if version and cuda != version:
            message = f"has the variant {name}, whose CUDA is {cuda or 'not given'}"
            rules.append(BrokenRule("variants", message, f'write cuda: "{version}" in it, or rename it'))
    return rules


class Environment(_Source):
    """A framework release with its interpreter and packages: an image to pull, or packages to install."""

    framework: Framework
    """The framework to measure."""
    release: Text
    """The release as the framework spells it, such as "1.0.0"; "2.*" stands for the newest 2.x."""
    python: PythonVersion | None = None
    """The version of Python, in quotes: YAML reads 3.10 as the number 3.1."""
    image: Image | None = None
    """An image to pull and use unchanged, instead of building one."""
    variants: dict[VariantName, Variant] = Field(default={})
    """An entry for cpu and one for cuda, if the two need different packages; or cuda-12.6 and cuda-13.0, of which the
    plan takes the newest that the GPU and its driver run."""
    env: dict[VariableName, VariableValue] = Field(default={})
    """The environment variables of its processes, set before the interpreter starts: OMP_WAIT_POLICY: "passive". Values
    are text, in quotes where they are numbers, and are kept in records."""
    note: Text | None = None
    """A remark for people."""
    extends: EnvironmentId | None = None
    """The id of an environment that gives this one all other keys: only `add`, `env` and `note` are written with it.
    The variables of `env` are added to those of the other; without `add`, both have the same image."""
    add: Annotated[tuple[PackageRequirement, ...], Field(strict=False)] = ()
    """The packages that it has in addition (PEP 508); `runner lock` resolves them together with the `requirements` of
    the other, into a lock beside that of the other, with the name of this environment."""

    def variant(self, device: Device) -> Variant | None:
        """Return how to build the environment for a device; None if it has variants, but none for this device.

        Of several variants for cuda it is the one with the newest CUDA. If packages are installed, ``base`` is set in
        any case.
        """
        return next(iter(self.variants_for(device).values()), None)

    def variants_for(self, device: Device) -> dict[str, Variant]:
        """Return name -> variant, for all variants that serve a device, the newest CUDA first; see ``variant``."""
        default = Variant(image=self.image, **{name: getattr(self, name) for name in _SOURCE_KEYS})
        variants = self.variants or {device: default}
        serving = {name: self._with_base(each) for name, each in variants.items() if name.partition("-")[0] == device}
        return dict(sorted(serving.items(), key=lambda item: cuda_key(item[1]), reverse=True))

    def all_variants(self) -> dict[str, Variant]:
        """Return name -> variant for every device; the name is ``cpu`` where there is one build for all devices."""
        return self.variants_for("cpu") | (self.variants_for("cuda") if self.variants else {})

    def with_cuda_variant(self, name: str) -> "Environment":
        """Return the environment with one variant for cuda alone."""
        kept = {key: each for key, each in self.variants.items() if key == name or key.partition("-")[0] != "cuda"}
        return self.model_copy(update={"variants": kept})

    def _with_base(self, variant: Variant) -> Variant:
        if variant.base is None and variant.image is None:
            return variant.model_copy(update={"base": f"python:{self.python}-slim"})
        return variant

    @model_validator(mode="after")
    def _rules_hold(self) -> "Environment":
        rules = broken_rules({name: getattr(self, name) for name in type(self).model_fields})
        if rules:
            raise PydanticCustomError("rule", "{text}", {"text": "; ".join(rule.message for rule in rules)})
        return self
