"""How an environment of ``matrix.yaml`` is built: from an image, or from Python and packages, for one device or two."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from runner.core.architectures import USUAL, Architecture
from runner.core.model import Device
from runner.matrix.fields import (
    EnvironmentId,
    Framework,
    Image,
    PackageRequirement,
    Part,
    PythonVersion,
    Text,
    VariableName,
    VariableValue,
    VariantName,
)
from runner.matrix.sources import Source, Variant, cuda_key


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


_SOURCE_KEYS = tuple(Source.model_fields)


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
    if "variants" not in present:
        rules += [*_broken_follow("follow", keys, ""), *_broken_aarch64("aarch64", keys, "")]
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


def _broken_aarch64(key: str, keys: Mapping[str, object], where: str) -> list[BrokenRule]:
    """Return the broken rules about a build for aarch64; the arguments are those of ``_broken_follow``."""
    value = keys.get("aarch64")
    build: Mapping[str, object] = (
        value if isinstance(value, Mapping) else dict(value) if isinstance(value, Part) else {}
    )
    rules, where = _broken_follow(key, build, f"{where}on aarch64 "), f"{where}on aarch64 "
    if build.get("image") and build.get("lock"):
        rules.append(BrokenRule(key, f"{where}has both an image and a lock", "an image is pulled as it is: remove one"))
    if value is not None and not (build.get("image") or build.get("lock") or build.get("requirements")):
        rules.append(BrokenRule(key, f"{where}does not say what to install", "add requirements: to aarch64:"))
    return rules


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
        where = f"in the variant {name} "
        rules += [*_broken_follow("variants", written, where), *_broken_aarch64("variants", written, where)]
        version = str(name).partition("-")[2]
        cuda = variant.get("cuda") if isinstance(variant, Mapping) else getattr(variant, "cuda", None)
        if version and cuda != version:
            message = f"has the variant {name}, whose CUDA is {cuda or 'not given'}"
            rules.append(BrokenRule("variants", message, f'write cuda: "{version}" in it, or rename it'))
    return rules


class Environment(Source):
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
    _architecture: Architecture = PrivateAttr(default=USUAL)
    _of_x86_64: frozenset[Device] = PrivateAttr(default=frozenset())

    @property
    def architecture(self) -> Architecture:
        """What its builds are for."""
        return self._architecture

    @property
    def of_x86_64(self) -> frozenset[Device]:
        """The devices that it has builds for on x86_64, and none on its own architecture."""
        return self._of_x86_64

    def for_architecture(self, architecture: Architecture) -> "Environment":
        """Return the environment with the builds for an architecture; this one is for x86_64.

        Packages with CUDA that serve both devices are a build for cpu alone on aarch64, where they have no CUDA.
        """
        if architecture == self._architecture:
            return self
        default = self._default()
        written = self.variants or {("cpu" if default.cuda else ""): default}
        if not self.variants and default.aarch64 is None:
            written = {key: each.model_copy(update={"cuda": None, "cudnn": None}) for key, each in written.items()}
        builds = {key: build for key, each in written.items() if (build := each.for_aarch64()) is not None}
        keys = dict(builds.pop("", Variant())) | {"variants": builds}
        copy = self.model_copy(update=keys)
        devices: tuple[Device, ...] = ("cpu", "cuda")
        has_default = bool(copy.image or copy.requirements or copy.lock)
        here = {each for each in devices if has_default or (builds and copy.variants_for(each))}
        copy._of_x86_64 = frozenset(each for each in devices if self.variants_for(each)) - here  # noqa: SLF001
        copy._architecture = architecture  # noqa: SLF001  a copy that nobody else has
        return copy

    def variant(self, device: Device) -> Variant | None:
        """Return how to build the environment for a device; None if it has variants, but none for this device.

        Of several variants for cuda it is the one with the newest CUDA. If packages are installed, ``base`` is set in
        any case.
        """
        return next(iter(self.variants_for(device).values()), None)

    def variants_for(self, device: Device) -> dict[str, Variant]:
        """Return name -> variant, for all variants that serve a device, the newest CUDA first; see ``variant``."""
        variants = self.variants or ({} if self._of_x86_64 else {device: self._default()})
        serving = {name: self._with_base(each) for name, each in variants.items() if name.partition("-")[0] == device}
        return dict(sorted(serving.items(), key=lambda item: cuda_key(item[1]), reverse=True))

    def all_variants(self) -> dict[str, Variant]:
        """Return name -> variant for every device; the name is ``cpu`` where there is one build for all devices."""
        return self.variants_for("cpu") | (self.variants_for("cuda") if self.variants else {})

    def with_cuda_variant(self, name: str) -> "Environment":
        """Return the environment with one variant for cuda alone."""
        kept = {key: each for key, each in self.variants.items() if key == name or key.partition("-")[0] != "cuda"}
        return self.model_copy(update={"variants": kept})

    def _default(self) -> Variant:
        """Return the one build of an environment without variants."""
        return Variant(image=self.image, **{name: getattr(self, name) for name in _SOURCE_KEYS})

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
