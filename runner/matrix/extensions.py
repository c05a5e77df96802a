"""Environments that add packages to another: ``extends: torch-2.x`` with ``add: [torchvision]``.

They are written out before the models check the matrix, so that the rest of the program knows one kind of environment.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from runner.core.errors import Problem
from runner.matrix.environments import Environment, package_name
from runner.matrix.patterns import nearest_name
from runner.matrix.yaml_tree import Path, Tree

KEYS = ("extends", "add", "note")
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
        base = environments.get(written["extends"])
        if not mistakes and _has_readable_sources(base) and all(map(package_name, written["add"])):
            complete[name] = _with_packages(name, written, base)
    return {**tree.data, "environments": complete}, problems


def _mistakes_in_base(tree: Tree, name: str, environments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why an environment cannot extend what it names, at ``extends``."""
    extends = environments[name]["extends"]
    base, where = environments.get(extends), tree.source.node(tree.values["environments", name, "extends"])
    if extends == name:
        yield Problem(f"{name} extends itself", where, "name another environment")
    elif extends not in environments:
        hint = nearest_name(extends, [each for each in environments if each != name])
        yield Problem(f"{name} extends {extends!r}, and there is no such environment", where, hint)
    elif is_extension(base):
        hint = "extend an environment that extends none, and list all packages in add:"
        yield Problem(f"{name} extends {extends}, which extends {base['extends']}", where, hint)
    elif _has_readable_sources(base):
        sources = base.get("variants") or {"": base}
        if all("image" in source for source in sources.values()):
            hint = "packages are added to what a lock installs: write an environment with python: and requirements:"
            yield Problem(f"{name} extends {extends}, an image, which is pulled as it is", where, hint)
        for key, source in sources.items():
            if "image" not in source and not source.get("requirements"):
                variant = f" ({key})" if key else ""
                hint = f"add requirements: to {extends}, from which its lock was made"
                yield Problem(f"{name} extends {extends}{variant}, which has no requirements", where, hint)


def _mistakes_in_keys(tree: Tree, name: str, environments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys that come from the extended environment, and the packages that are missing or repeated."""
    path: Path = ("environments", name)
    written, extends = environments[name], environments[name]["extends"]
    for key in written:
        if key in Environment.model_fields and key not in KEYS:
            hint = f"remove {key}:, or write the environment without extends:"
            yield Problem(f"{name} takes {key} from {extends}", tree.source.node(tree.keys[*path, key]), hint)
    if not written.get("add"):
        where = tree.source.node(tree.keys[*path, "add" if "add" in written else "extends"])
        yield Problem(f"{name} extends {extends} and adds no package", where, "name packages: add: [torchvision]")
    required, base = dict[str, str](), environments.get(extends)
    if extends != name and _has_readable_sources(base):
        sources = base.get("variants") or {"": base}
        required = {package_name(each): each for one in sources.values() for each in one.get("requirements") or ()}
    added = written.get("add") if isinstance(written.get("add"), list) else []
    packages = [package_name(each) if isinstance(each, str) else "" for each in added]
    for index, package in enumerate(packages):
        where = tree.source.node(tree.values[*path, "add", index])
        if package and package in packages[:index]:
            yield Problem(f"{name} adds {package} twice", where, "keep one of the two")
        elif package and package in required:
            message = f"{name} adds {package}, and {extends} requires {required[package]}"
            yield Problem(message, where, "remove it, or write the environment without extends:")


def _has_readable_sources(base: object) -> bool:
    """Return True if the keys of an environment that its extensions read have the right types."""
    if not isinstance(base, dict):
        return False
    variants = base.get("variants") or {}
    if not isinstance(variants, dict) or not all(isinstance(each, dict) for each in variants.values()):
        return False
    sources = [base, *variants.values()]
    requirements = [source.get("requirements") or [] for source in sources]
    return all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in requirements) and all(
        isinstance(source.get("lock", ""), str) for source in sources
    )


def _with_packages(name: str, written: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment with all keys: those of the extended one, the packages, and a lock for each build.

    Variants that are images are left out, for nothing is added to an image.
    """
    variants = base.get("variants") or {}
    complete = {**base, **written} if variants else {**_source(name, written["add"], base), **written}
    if variants:
        complete["variants"] = {
            key: _source(f"{name}-{key}", written["add"], variant)
            for key, variant in variants.items()
            if "image" not in variant
        }
    return complete


def _source(stem: str, added: list[str], source: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to build an environment or a variant with further packages: its lock lies where the other's lies."""
    folder = PurePosixPath(source["lock"]).parent if "lock" in source else PurePosixPath(LOCKS)
    requirements = [*source["requirements"], *added]
    return {**source, "requirements": requirements, "lock": str(folder / f"{stem}.txt")}
