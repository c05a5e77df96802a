"""What interpreters and images hold that are measured as they are, as environments of the matrix.

``--backend host`` measures one interpreter, as the only environment; ``python:PATH`` and ``image:NAME`` are measured in
turns with others.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from runner.backends import BACKENDS, SIDE_BY_SIDE, Backend, Installed
from runner.core.errors import Problem, UsageError
from runner.matrix import Environment, Matrix
from runner.matrix.models import Selector
from runner.releases.existing import Existing, checked_id, existing_ids, split_existing, with_ids
from runner.session.options import Options

NEEDED: Mapping[str, str] = {"python": "venv", "image": "docker"}
"""Kind of a word -> the backend that measures what it names, beside the environments that it makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingEnvironments:
    """What interpreters and images as they are make of a matrix.

    Attributes:
        matrix: with an environment for each.
        options: the selectors have the ids of these.
        installed: id -> what it holds.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    options: Options
    installed: Mapping[str, Installed] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def existing_words(selectors: Sequence[str]) -> tuple[Existing, ...]:
    """Return the interpreters and images that selectors name."""
    return tuple(word for _, word, _ in map(split_existing, selectors) if word is not None)


def backend_for(options: Options) -> str:
    """Return the backend to choose: what was typed, or the one that measures what exists.

    Raises:
        UsageError: the one that was typed measures no such interpreter or image, or none measures all of them.
    """
    words = existing_words(options.selectors or ())
    kinds = {word.kind for word in words}
    if not kinds or options.backend not in {"auto", *BACKENDS}:
        return options.backend
    if len(kinds) > 1:
        message = "interpreters of this machine and images cannot be measured in one run: a container is isolated"
        raise UsageError(Problem(message, hint="name python: alone, or image: alone"))
    needed = NEEDED[words[0].kind]
    if options.backend not in ("auto", needed):
        message = f"--backend {options.backend} cannot measure {words[0].word}"
        raise UsageError(
            Problem(message, hint=f"leave out --backend {options.backend}: --backend {needed} measures it")
        )
    return needed


def with_existing(matrix: Matrix, options: Options, backend: Backend) -> ExistingEnvironments:
    """Return the matrix with the interpreters and images that selectors name; of the host backend, with its only one.

    Args:
        matrix: the checked matrix.
        options: what was typed; selectors may be ``python:PATH`` or ``a=image:NAME``, with variables and cells.
        backend: finds out what they hold, see ``backend_for``.

    Raises:
        UsageError: there is no such interpreter or image, it has no framework, or its id is taken.
        EngineError: no engine answers.
    """
    only = backend.installed()
    if only is not None:
        note = choice_note(only, options.framework)
        alone, held = host_matrix(matrix, only, options.name), {options.name: only}
        return ExistingEnvironments(matrix=alone, options=options, installed=held, notes=(note,) if note else ())
    ids = existing_ids(existing_words(options.selectors or ()), matrix.environments)
    if not ids:
        return ExistingEnvironments(matrix=matrix, options=options)
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE, thread_name_prefix="probe") as pool:
        probes = [pool.submit(backend.probe, word.source, name, options.framework) for word, name in ids.items()]
        installed = {name: probe.result() for name, probe in zip(ids.values(), probes, strict=True)}
    notes = [f"{name}: {each.source}, {each.framework} {each.release}" for name, each in installed.items()]
    choices = [choice_note(each, options.framework) for each in installed.values()]
    return ExistingEnvironments(
        matrix=matrix.with_as_is({name: environment_of(each) for name, each in installed.items()}),
        options=replace(options, selectors=with_ids(options.selectors or (), matrix.environments)),
        installed=installed,
        notes=(*notes, *filter(None, choices)),
    )


def word_of(installed: Installed) -> str:
    """Return how an interpreter or an image is typed, without an id."""
    return Existing("image" if installed.image else "python", installed.source).word


def choice_note(installed: Installed, chosen: str | None) -> str | None:
    """Return which framework is measured if there are several and none was chosen, else None."""
    if chosen or not installed.others:
        return None
    framework, others = installed.framework, ", ".join(installed.others)
    return f"{installed.source} has {framework} and {others}: measuring {framework}; --framework chooses"


def environment_of(installed: Installed) -> Environment:
    """Return an interpreter or an image as an environment; raises UsageError if it says what cannot be."""
    content = {
        "framework": installed.framework,
        "release": installed.release,
        "python": installed.python_version,
        **({"image": installed.image} if installed.image else {"requirements": [installed.framework]}),
    }
    try:
        return Environment.model_validate(content)
    except ValidationError as error:
        message = f"{installed.source} says of itself what cannot be: {content!r:.300}"
        raise UsageError(Problem(message, hint="choose another interpreter")) from error


def host_matrix(matrix: Matrix, installed: Installed, name: str) -> Matrix:
    """Return the matrix with one environment: what an interpreter holds.

    Presets select for it what they select for any environment, because their environments are those of the matrix.
    """
    environment = environment_of(installed)
    presets = {
        key: preset.model_copy(update={"select": tuple(map(_for_any_environment, preset.select))})
        for key, preset in matrix.presets.items()
    }
    bare = matrix.model_copy(update={"environments": {}, "presets": presets})
    return bare.with_as_is({checked_id(name): environment})


def _for_any_environment(selector: Selector) -> Selector:
    return selector.model_copy(update={"environments": ()})
