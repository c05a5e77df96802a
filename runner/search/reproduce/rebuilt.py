"""Make the environments of a stored run ready: by their digests if they exist, else from the locks of the run."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.backends import Installed, restored
from runner.core.errors import OutageError, Problem, ProvisionError, RecordError, RunnerError
from runner.core.files import read_bounded, write_whole
from runner.core.json import parse_object
from runner.core.model import Provisioned, Spec
from runner.core.model.variant_ids import without_variant
from runner.core.progress import Progress
from runner.core.variables import content_digest, refused_variable
from runner.search.reproduce.stored import Stored
from runner.session.context import Context
from runner.session.execution.header import stored_lock
from runner.store.documents import SBOM_FOLDER

MAX_SBOM = 64 << 20
HASHES = ("SHA-256", "SHA-384", "SHA-512")
"""What CycloneDX calls the hashes that a lock may have."""
_MINOR = re.compile(r"(\d+\.\d+)\.\d+")
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,199}")


def rebuilt(stored: Stored, context: Context, progress: Progress) -> Mapping[str, Provisioned]:
    """Return environment -> the environment as it was in the run.

    Raises:
        OutageError: one no longer exists and cannot be built now.
        RunnerError: one no longer exists and cannot be built again.
    """
    facts = stored.run.environments()
    return {name: _rebuilt(name, facts.get(name, {}), stored, context, progress) for name in stored.environments}


def _rebuilt(name: str, facts: Mapping[str, Any], stored: Stored, context: Context, progress: Progress) -> Provisioned:
    digest, framework = stored.header.digests.get(name, ""), stored.plan.frameworks[name]
    same_backend = context.backend.name == stored.header.backend
    ready = restored(context.backend, name, digest, facts) if same_backend else None
    if ready is not None:
        progress.note(f"{name}: the environment of run {stored.run.id} still exists")
        return replace(ready, framework=framework)
    installed = context.settings.as_is.get(without_variant(name))
    spec = _spec(name, facts, stored) if installed is None else _as_is(name, installed)
    skip = context.backend.survey([spec]).skips.get(name)
    if skip is not None:
        raise _gone(name, stored, skip.reason)
    try:
        ready = context.backend.provision(spec, lambda text: progress.status(name, text))
    except ProvisionError as error:
        if error.passing:
            hint = "give the same command again when that has passed"
            problem = Problem(f"{name} cannot be built now: {error.problems[0].message}", hint=hint)
            raise OutageError(problem) from error
        raise _gone(name, stored, error.problems[0].message) from error
    finally:
        progress.finish(name)
    is_same = ready.digest == content_digest(digest)
    if installed is None:
        same = "with the same digest" if is_same else f"with another digest, {ready.digest[:19]}"
        progress.note(f"{name}: built again from the lock of run {stored.run.id}, {same}")
    elif not is_same:
        held = f"{installed.source} holds {installed.framework} {installed.release} now"
        progress.note(f"{name}: not as in run {stored.run.id}: {held}")
    return replace(ready, variables=_variables(name, facts, stored))


def _variables(name: str, facts: Mapping[str, Any], stored: Stored) -> Mapping[str, str]:
    """Return the variables that an environment had; raises RunnerError where no user can set one of them."""
    variables: Mapping[str, str] = facts.get("env") or {}
    if reason := refused_variable(variables):
        raise _gone(name, stored, f"the run sets the variable {reason}")
    return variables


def _as_is(name: str, installed: Installed) -> Spec:
    """Return what it takes to start an interpreter as it is now: nothing of it is kept."""
    return Spec(
        environment=name, framework=installed.framework, release=installed.release, interpreter=installed.python
    )


def _spec(name: str, facts: Mapping[str, Any], stored: Stored) -> Spec:
    """Return what it takes to build an environment of a run again.

    Raises:
        RunnerError: the run does not say.
    """
    python = _MINOR.match(str(facts.get("python", "")))
    image = str(facts.get("image") or "") if facts.get("pulled") else ""
    lock = None if image else _lock(name, stored)
    if not image and lock is None:
        raise _gone(name, stored, "the run has neither its lock nor a bill of materials with hashes")
    if not image and python is None:
        raise _gone(name, stored, "the run does not say which Python it has")
    return Spec(
        environment=name,
        framework=stored.plan.frameworks[name],
        release=str(facts.get("version", "")),
        python=python[1] if python else None,
        image=image or None,
        base=str(facts.get("base") or "") or (f"python:{python[1]}-slim" if python else None),
        lock=lock,
    )


def _lock(name: str, stored: Stored) -> Path | None:
    """Return the lock of an environment in a run; of a run without one, what its bill of materials has."""
    path = stored_lock(stored.run.path, name)
    if path.is_file():
        return path.resolve()
    try:
        bill = parse_object(read_bounded(stored.run.path / SBOM_FOLDER / f"{name}.cdx.json", MAX_SBOM), path, 1)
    except (OSError, RecordError):
        return None
    text = lock_of_bill(bill)
    if not text:
        return None
    path.parent.mkdir(exist_ok=True)
    write_whole(path, text)
    return path.resolve()


def lock_of_bill(bill: Mapping[str, Any]) -> str:
    """Return a lock with the packages of a bill of materials that have hashes; empty if none has.

    Packages without hashes came with the image or with Python: pip, setuptools. An additional index is not in it.

    Args:
        bill: as ``session.execution.sbom`` writes it.
    """
    lines = []
    for component in bill.get("components", ()):
        if not isinstance(component, Mapping) or component.get("type") != "library":
            continue
        name, version = str(component.get("name", "")), str(component.get("version", ""))
        references = component.get("externalReferences") or [{}]
        hashes = [
            f"--hash={each['alg'].lower().replace('-', '')}:{each['content']}"
            for each in references[0].get("hashes", ())
            if each.get("alg") in HASHES
        ]
        if hashes and _COMPONENT.fullmatch(name) and _COMPONENT.fullmatch(version):
            lines.append(" \\\n    ".join([f"{name}=={version}", *hashes]))
    return "\n".join(["# made from a bill of materials", *lines, ""]) if lines else ""


def _gone(name: str, stored: Stored, reason: str) -> RunnerError:
    message = f"the environment {name} of run {stored.run.id} no longer exists, and cannot be built again: {reason}"
    return RunnerError(Problem(message, hint="measure the release anew with `runner run`"))
