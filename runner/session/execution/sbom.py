"""Write what an environment consists of as a bill of materials in CycloneDX 1.6 (ECMA-424), one for each environment.

The packages are those that the environment reported when its first server started; the hashes are those of its lock.
Scanners for known vulnerabilities and licences read such files. Format: https://cyclonedx.org/docs/1.6/json/
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.utils import canonicalize_name

from runner.backends.lock_file import LockedPackage, parse_lock
from runner.core.files import write_whole
from runner.core.model import Provisioned
from runner.core.version import __version__
from runner.store.documents import text as json_text

FOLDER = "sbom"
SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
ALGORITHMS: Mapping[str, str] = {"sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # what an environment reports is checked: it may be hostile
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,199}")


def write_sbom(run: Path, ready: Provisioned, facts: Mapping[str, Any], at: str) -> None:
    """Write ``sbom/<environment>.cdx.json`` into a run folder; see ``sbom`` for the arguments."""
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{ready.environment}.cdx.json", json_text(sbom(ready, facts, at)))


def sbom(ready: Provisioned, facts: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return the bill of materials of an environment.

    Args:
        ready: the environment, with the lock that it was installed from.
        facts: what its first server reported; ``packages`` is name -> version, ``python`` the version of Python.
        at: the time in UTC, as journals have it.
    """
    components = [*_platform(ready, facts), *_packages(ready, facts)]
    reference = f"environment:{ready.environment}"
    references = [component["bom-ref"] for component in components]
    properties = {"digest": ready.digest, "framework": ready.framework}
    identity = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join([reference, ready.digest, at, *references]))
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        "metadata": {
            "timestamp": at,
            "tools": {"components": [{"type": "application", "name": "matrix-runner", "version": __version__}]},
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": ready.environment,
                "properties": _properties(properties),
            },
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": references}],
    }


def _platform(ready: Provisioned, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the image that the environment is or is built on, and its Python."""
    name, pin = ready.facts.get("base") or ready.facts.get("image"), str(ready.facts.get("pin", ""))
    if isinstance(name, str) and name:
        component: dict[str, Any] = {"type": "container", "bom-ref": f"image:{name}", "name": name}
        if pin.startswith("sha256:"):
            repository = re.sub(r":[^/:]*$", "", name.partition("@")[0])
            last = repository.rpartition("/")[2]
            purl = f"pkg:oci/{quote(last)}@{quote(pin, safe='')}?repository_url={quote(repository, safe='/')}"
            component |= {"version": pin, "purl": purl}
        yield component | {"properties": _properties({"pin": pin})}
    version = facts.get("python")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        purl = f"pkg:generic/python@{quote(version, safe='')}"
        yield {"type": "platform", "bom-ref": purl, "name": "python", "version": version, "purl": purl}


def _packages(ready: Provisioned, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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
        component = _package(name, version, locked.get((name, version)))
        unlocked = lock is not None and (name, version) not in locked
        yield component | ({"properties": _properties({"locked": "no"})} if unlocked else {})


def _package(name: str, version: str, locked: LockedPackage | None) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{quote(version, safe='')}"
    component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if locked is None:
        return component
    # A lock has a hash for each file of the version, so they are those of its distributions, not of the component.
    # Their address is the package URL: a lock does not say which index a file comes from.
    pairs = [text.split(":") for text in locked.hashes]
    hashes = [{"alg": ALGORITHMS[kind], "content": value} for kind, value in pairs]
    distribution = {"type": "distribution", "url": purl, "hashes": hashes}
    return component | {"externalReferences": [distribution]}


def _properties(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": f"matrix-runner:{name}", "value": value} for name, value in values.items() if value]
