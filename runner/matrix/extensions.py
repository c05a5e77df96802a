"""Environments that add packages or variables to another: ``extends: torch-2.x`` with ``add: [torchvision]``.

They are written out before the models check the matrix, so that the rest of the program knows one kind of environment.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from runner.core.errors import Problem
from runner.matrix.environments import Environment, package_name
from runner.matrix.patterns import nearest_name
from runner.matrix.yaml_tree import Path, Tree

KEYS = ("extends", "add", "env", "note")
"""The keys of an environment that extends another; all others come from that environment."""

LOCKS = "docker/locks"
"""The folder of the lock where the extended environment names none."""


def is_extension(written: object) -> bool:
    """Return True if an environment, as it is written, extends another."""
    return isinstance(written, dict) and written.get("extends") is not None


def write_out(tree: Tree) -> tuple[dict[str, Any], list[Problem]]:
    """Return the data of a matrix with the environments that extend others written out, and the mistakes in them.

    An environment with a mistake stays as it is, and the models refuse it. They also report values of a wrong type, of
    it and of the environment that it extends.

    Args:
        tree: the file; its data is a mapping, and does not change.
    """
    environments = tree.data.get("environments")
    if not isinstance(environments, dict):
        return tree.data, []
    complete, problems = dict(environments), list[Problem]()
    for name, written in environments.items():
        if not is_extension(written) or not isinstance(written["extends"], str):
            continue
        mistakes = [*_mistakes_in_base(tree, name, environments), *_mistakes_in_keys(tree, name, environments)]
        problems += mistakes
        base = _readable(environments.get(written["extends"]))
        packages = _packages(written)
        if not mistakes and base and all(packages):
            complete[name] = _with_variables(_with_packages(name, written, base) if packages else written, base)
    return {**tree.data, "environments": complete}, problems


def _mistakes_in_base(tree: Tree, name: str, environments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why an environment cannot extend what it names, at ``extends``."""
    extends = str(environments[name]["extends"])
    base: Any = environments.get(extends)
    where = tree.source.node(tree.values["environments", name, "extends"])
    if extends == name:
        yield Problem(f"{name} extends itself", where, "name another environment")
    elif extends not in environments:
        hint = nearest_name(extends, [each for each in environments if each != name])
        yield Problem(f"{name} extends {extends!r}, and there is no such environment", where, hint)
    elif is_extension(base):
        hint = "extend an environment that extends none, and list all packages in add:"
        yield Problem(f"{name} extends {extends}, which extends {base['extends']}", where, hint)
    elif (readable := _readable(base)) and environments[name].get("add"):
        sources = readable.get("variants") or {"": readable}
        if all(source.get("image") for source in sources.values()):
            hint = "packages are added to what a lock installs: write an environment with python: and requirements:"
            yield Problem(f"{name} extends {extends}, an image, which is pulled as it is", where, hint)
        builds = [(key, source) for key, source in sources.items() if not source.get("image")]
        builds += [(f"{key} aarch64".strip(), each["aarch64"]) for key, each in sources.items() if each.get("aarch64")]
        for key, source in builds:
            if not source.get("requirements"):
                build = f" ({key})" if key else ""
                hint = f"add requirements: to {extends}, from which its lock was made"
                yield Problem(f"{name} extends {extends}{build}, which has no requirements", where, hint)


def _mistakes_in_keys(tree: Tree, name: str, environments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys that come from the extended environment, and the packages that are missing or repeated."""
    path: Path = ("environments", name)
    written, extends = environments[name], environments[name]["extends"]
    for key in written:
        if key in Environment.model_fields and key not in KEYS:
            hint = f"remove {key}:, or write the environment without extends:"
            yield Problem(f"{name} takes {key} from {extends}", tree.source.node(tree.keys[*path, key]), hint)
    if not written.get("add") and not written.get("env"):
        where = tree.source.node(tree.keys[*path, "add" if "add" in written else "extends"])
        hint = 'name packages, or variables: add: [torchvision], env: {OMP_WAIT_POLICY: "passive"}'
        yield Problem(f"{name} extends {extends} and adds neither packages nor variables", where, hint)
    base = _readable(environments.get(extends)) or {}
    sources = [base, *(base.get("variants") or {}).values()]
    sources += [source["aarch64"] for source in sources if source.get("aarch64")]
    required = {package_name(each): each for source in sources for each in source.get("requirements") or ()}
    packages = _packages(written)
    for index, package in enumerate(packages):
        where = tree.source.node(tree.values[*path, "add", index])
        if package and package in packages[:index]:
            yield Problem(f"{name} adds {package} twice", where, "keep one of the two")
        elif package and package in required:
            message = f"{name} adds {package}, and {extends} requires {required[package]}"
            yield Problem(message, where, "remove it, or write the environment without extends:")


def _packages(written: Mapping[str, Any]) -> list[str]:
    """Return the names of the packages that an environment adds; empty for each that is no requirement."""
    added = written.get("add")
    return [package_name(each) if isinstance(each, str) else "" for each in (added if isinstance(added, list) else [])]


def _readable(base: object) -> dict[str, Any] | None:
    """Return an environment as it is written; None if keys that extensions read have a type that the models refuse."""
    if not isinstance(base, dict):
        return None
    variants = base.get("variants") or {}
    if not isinstance(variants, dict) or not all(isinstance(each, dict) for each in variants.values()):
        return None
    sources = [base, *variants.values()]
    for source in [*sources, *(each["aarch64"] for each in sources if each.get("aarch64") is not None)]:
        if not isinstance(source, dict):
            return None
        requirements, lock = source.get("requirements") or [], source.get("lock") or ""
        if not isinstance(lock, str) or not isinstance(requirements, list):
            return None
        if not all(isinstance(each, str) for each in requirements):
            return None
    return base


def _with_packages(name: str, written: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment with all keys: those of the environment it extends, the packages, and a lock per build.

    Variants that are images are left out, for nothing is added to an image.
    """
    variants = base.get("variants") or {}
    complete = {**base, **written} if variants else {**_source(name, written["add"], base), **written}
    if variants:
        complete["variants"] = {
            key: _source(f"{name}-{key}", written["add"], variant)
            for key, variant in variants.items()
            if not variant.get("image")
        }
    return complete


def _with_variables(complete: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment with what it lacks from the one that it extends, and with the variables of both."""
    of_both = [each.get("env") or {} for each in (base, complete)]
    is_mapping = all(isinstance(each, dict) for each in of_both)
    return {**base, **complete, **({"env": {**of_both[0], **of_both[1]}} if is_mapping else {})}


def _source(stem: str, added: list[str], source: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to build an environment or a variant with further packages: its lock lies where the other's lies."""
    folder = PurePosixPath(source["lock"]).parent if source.get("lock") else PurePosixPath(LOCKS)
    requirements = [*source["requirements"], *added]
    complete = {**source, "requirements": requirements, "lock": str(folder / f"{stem}.txt")}
    if source.get("aarch64"):
        complete["aarch64"] = _source(f"{stem}-aarch64", added, source["aarch64"])
    return complete
