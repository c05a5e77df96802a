"""Write what an environment consists of as a bill of materials in CycloneDX 1.6 (ECMA-424), one for each environment.

The packages are those that the environment reported when its first server started; the hashes are those of its lock.
Scanners for known vulnerabilities and licences read such files. Import this module when a bill is written: its library
takes longer than the writing.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from runner.backends.lock_file import LockedPackage, parse_lock
from runner.core.files import write_whole
from runner.core.model import Provisioned
from runner.core.version import __version__
from runner.store.documents import SBOM_FOLDER

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # what an environment reports is checked: it may be hostile
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,199}")


def write_sbom(run: Path, ready: Provisioned, facts: Mapping[str, Any], at: str) -> None:
    """Write ``sbom/<environment>.cdx.json`` into a run folder; see ``sbom`` for the arguments."""
    folder = run / SBOM_FOLDER
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{ready.environment}.cdx.json", sbom(ready, facts, at) + "\n")


def sbom(ready: Provisioned, facts: Mapping[str, Any], at: str) -> str:
    """Return the bill of materials of an environment, as JSON.

    Args:
        ready: the environment, with the lock that it was installed from.
        facts: what its first server reported; ``packages`` is name -> version, ``python`` the version of Python.
        at: the time in UTC, as journals have it.
    """
    environment = Component(
        type=ComponentType.APPLICATION,
        bom_ref=f"environment:{ready.environment}",
        name=ready.environment,
        properties=_properties(digest=ready.digest, framework=ready.framework),
    )
    components = [*_platform(ready, facts), *_packages(ready, facts)]
    references = [each.bom_ref.value or "" for each in (environment, *components)]
    tool = Component(type=ComponentType.APPLICATION, name="matrix-runner", version=__version__)
    bom = Bom(
        components=components,
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, "\n".join([ready.digest, at, *references])),
        metadata=BomMetaData(
            component=environment, timestamp=datetime.fromisoformat(at), tools=ToolRepository(components=[tool])
        ),
    )
    bom.register_dependency(environment, components)
    return JsonV1Dot6(bom).output_as_string(indent=1)


def _platform(ready: Provisioned, facts: Mapping[str, Any]) -> Iterator[Component]:
    """Yield the image that the environment is or is built on, and its Python."""
    name, pin = ready.facts.get("base") or ready.facts.get("image"), str(ready.facts.get("pin", ""))
    if isinstance(name, str) and name:
        purl = None
        if pin.startswith("sha256:"):
            repository = re.sub(r":[^/:]*$", "", name.partition("@")[0])
            qualifiers = {"repository_url": repository}
            purl = PackageURL("oci", name=repository.rpartition("/")[2], version=pin, qualifiers=qualifiers)
        yield Component(
            type=ComponentType.CONTAINER,
            bom_ref=f"image:{name}",
            name=name,
            version=purl and pin,
            purl=purl,
            properties=_properties(pin=pin),
        )
    version = facts.get("python")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        yield _component("generic", "python", version, ComponentType.PLATFORM)


def _packages(ready: Provisioned, facts: Mapping[str, Any]) -> Iterator[Component]:
    """Yield the packages in alphabetical order; those that the lock has in this version with its hashes."""
    lock = parse_lock(ready.lock, "lock") if ready.lock else None
    packages = lock.packages if lock else ()
    locked: dict[tuple[str, str], LockedPackage] = {(package.key, package.version): package for package in packages}
    reported = facts.get("packages")
    installed: dict[str, str] = {
        canonicalize_name(name): version
        for name, version in (reported.items() if isinstance(reported, Mapping) else ())
        if isinstance(name, str) and isinstance(version, str) and _NAME.fullmatch(name) and _VERSION.fullmatch(version)
    }
    pairs: Iterable[tuple[str, str]] = installed.items() or locked
    for name, version in sorted(pairs):
        component = _component("pypi", name, version, ComponentType.LIBRARY)
        if package := locked.get((name, version)):
            component.external_references.add(_distribution(package, str(component.purl)))
        elif lock is not None:
            component.properties.update(_properties(locked="no"))
        yield component


def _component(kind: str, name: str, version: str, component_type: ComponentType) -> Component:
    purl = PackageURL(kind, name=name, version=version)
    return Component(type=component_type, bom_ref=str(purl), name=name, version=version, purl=purl)


def _distribution(package: LockedPackage, url: str) -> ExternalReference:
    """Return the distributions of a package: a lock has a hash for each file, and does not say which index has it."""
    pairs = [text.split(":") for text in package.hashes]
    hashes = [HashType(alg=HashAlgorithm(kind.replace("sha", "SHA-")), content=value) for kind, value in pairs]
    return ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url), hashes=hashes)


def _properties(**values: str) -> list[Property]:
    return [Property(name=f"matrix-runner:{name}", value=value) for name, value in values.items() if value]
