"""Which modules of users' networks the environments of a plan seem to lack, all at once, and what to write for them."""

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from runner.core.grouping import grouped
from runner.core.model import Plan
from runner.core.text import enumerated
from runner.harness.model.packages import PACKAGES, package_of
from runner.matrix import Environment, Matrix
from runner.matrix.environments import package_name
from runner.matrix.model_file import Network
from runner.matrix.model_file.imports import NeededModule

BUILDS: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu", "intel-tensorflow"),
    "keras": ("keras", "keras-nightly"),
    "faiss": ("faiss-gpu",),
}
"""Module -> further packages that have it; those of a framework are named in full, for others have similar names."""
FAMILIES: Mapping[str, str] = {"cv2": "opencv", "google": "google", "nvidia": "nvidia", "onnxruntime": "onnxruntime"}
"""Module -> how the names of all packages begin that may have it."""
AFFIXES = re.compile(r"^(?:python|py|lib)-?|-?(?:python|py|cpu|gpu|lib|nightly|cu\d+)$")
"""What names of packages have more than the names of their modules: ``python-dateutil``, ``pyyaml``, ``faiss-cpu``."""
SPECIAL = re.compile(r"[^A-Za-z0-9._-]")
"""Characters with which a requirement is put in quotes in YAML."""


def has_module(packages: Collection[str], name: str) -> bool:
    """Return whether one of the packages of a lock may have a module; in doubt, it may.

    Args:
        packages: normalized names.
        name: the first part of the module's name.

    >>> has_module({"pyyaml", "opencv-python"}, "yaml"), has_module({"pyyaml"}, "tqdm")
    (True, False)
    """
    known = {canonicalize_name(name), *BUILDS.get(name, ())}
    if name in PACKAGES:
        known.add(package_name(PACKAGES[name]))
    if known & set(packages):
        return True
    if name in FAMILIES:
        return any(package.startswith(FAMILIES[name]) for package in packages)
    plain = canonicalize_name(name)
    return name not in BUILDS and any(AFFIXES.sub("", package) == plain for package in packages)


def missing_modules(matrix: Matrix, plan: Plan, locked: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return what to say about the modules of the networks of a plan that its environments seem to lack.

    It skips no cell: which package has which module is known of some packages alone.

    Args:
        matrix: the checked matrix, with the networks.
        plan: with verdicts; cells that do not run count for nothing.
        locked: environment -> the packages of its lock, see ``backends.lock_file``; others are not known.
    """
    running = [planned.cell for planned in plan.cells if planned.skip is None]
    pairs = grouped((cell.workload, matrix.image_of(cell.environment)) for cell in running)
    notes: list[str] = []
    for workload, environments in pairs.items():
        if workload in matrix.networks:
            network, names = matrix.networks[workload], list(dict.fromkeys(environments))
            notes += _notes(matrix, workload, network, {name: locked[name] for name in names if name in locked})
    return tuple(notes)


def _notes(matrix: Matrix, workload: str, network: Network, locked: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for file in network.imports.hidden:
        both_files = f"{file} beside {_file(network).name}"
        yield f"{both_files} does not travel: its name is that of another module: rename the file"
    lacking = {name: _lacking(matrix, network, name, packages) for name, packages in locked.items()}
    of_user = {module: None for modules in lacking.values() for module in modules if module.other_path}
    for module in of_user:
        yield _of_folder(module, network)
    groups = grouped(
        (tuple(each for each in modules if not each.other_path), name) for name, modules in lacking.items()
    )
    for modules, names in groups.items():
        if modules:
            yield _of_packages(matrix, workload, modules, names)


def _file(network: Network) -> Path:
    """Return the user's file: of a wrapper, the one that ``--model`` names, as in ``nets.py:UNet``."""
    return Path(re.sub(r"(\.py):.*", r"\1", str(network.path), flags=re.DOTALL)) if network.is_wrapped else network.path


def _imported_at(network: Network, module: NeededModule) -> str:
    """Return where a module is imported; a wrapper is written nowhere, so what ``--model`` names stands for it."""
    is_unsaved = network.is_wrapped and module.file == network.files.entry
    return str(network.path) if is_unsaved else f"{module.file}:{module.line}"


def _lacking(matrix: Matrix, network: Network, environment: str, packages: Collection[str]) -> tuple[NeededModule, ...]:
    framework = matrix.environments[environment].framework
    return tuple(
        module
        for module in network.imports.modules
        if module.framework in ("", framework) and not has_module(packages, module.name)
    )


def _of_folder(module: NeededModule, network: Network) -> str:
    """Return what to do about a module that the user has in another folder than that of the model file."""
    folder = module.other_path.rpartition("/")[0]
    where = f"{module.file}:{module.line} imports {module.name}, and {module.other_path} does not travel"
    file = _file(network)
    link = shlex.join(["ln", "-s", module.other_path, f"{file.parent}/"]) if folder != ".." else ""
    move = f"move {file.name} into {folder}/" if folder != ".." else f"copy {module.other_path} beside the file"
    return f"{where}: the modules beside the model file do: {' or '.join(filter(None, [move, link and f'`{link}`']))}"


def _of_packages(matrix: Matrix, workload: str, modules: Sequence[NeededModule], names: Sequence[str]) -> str:
    """Return which modules environments lack, and the entries of the matrix that have them."""
    imported = ", ".join(f"{module.name} ({_imported_at(matrix.networks[workload], module)})" for module in modules)
    packages = {module.name: package_of(module.name) for module in modules}
    unknown = [name for name, package in packages.items() if not package]
    added = list(dict.fromkeys(package or canonicalize_name(name) for name, package in packages.items()))
    head = f"{enumerated(names)} {'lacks' if len(names) == 1 else 'lack'} {imported}"
    entries = {name: _entry(matrix, name, workload, added) for name in names}
    fitting = {name: entry for name, entry in entries.items() if entry is not None}
    if not fitting:
        return f"{head}: add {', '.join(added)} to what {enumerated(names)} installs"
    new = " ".join(key for key, _ in fitting.values())
    doubt = ""
    if unknown:
        doubt = (
            f"; it is not known which packages have {enumerated(unknown)}: "
            "look for them before you lock the names below"
        )
    todo = f"write below `environments:`, then `runner lock {new}`, and measure {new.replace(' ', ' and ')}"
    return "\n".join([f"{head}: {todo}{doubt}", *(text for _, text in fitting.values())])


def _entry(matrix: Matrix, name: str, workload: str, added: Sequence[str]) -> tuple[str, str] | None:
    """Return the id and the text of an environment with further packages; None where nothing can be added to it.

    One that adds packages already is written again with all of them, for no environment extends an extended one.
    """
    environment: Environment = matrix.environments[name]
    base = environment.extends if environment.add else name
    sources = [variant for variant in environment.all_variants().values() if not variant.image]
    if not sources or not all(variant.requirements for variant in sources):
        return None
    key = name if environment.add else f"{name}-{workload}"
    lines = [f"  {key}:", f"    extends: {base}", f"    add: [{', '.join(map(_quoted, [*environment.add, *added]))}]"]
    if environment.add and environment.env:
        lines.append(f"    env: {json.dumps(dict(environment.env))}")
    return key, "\n".join(lines)


def _quoted(requirement: str) -> str:
    return json.dumps(requirement) if SPECIAL.search(requirement) else requirement
