"""The environment of the host backend: what an interpreter holds, as the only environment of the matrix."""

import re

from pydantic import ValidationError

from runner.backends import Installed
from runner.core.errors import Problem, UsageError
from runner.matrix import Environment, Matrix
from runner.matrix.fields import ENVIRONMENT_ID, LONGEST_ID
from runner.matrix.models import Selector


def choice_note(installed: Installed | None, chosen: str | None) -> str | None:
    """Return which framework of an interpreter is measured if it has several and none was chosen, else None."""
    if installed is None or chosen or not installed.others:
        return None
    framework, others = installed.framework, ", ".join(installed.others)
    return f"{installed.python} has {framework} and {others}: measuring {framework}; --framework chooses"


def host_matrix(matrix: Matrix, installed: Installed, name: str) -> Matrix:
    """Return the matrix with one environment: what an interpreter holds.

    Presets select for it what they select for any environment, because their environments are those of the matrix.
    """
    if len(name) > LONGEST_ID or not re.fullmatch(ENVIRONMENT_ID, name):
        hint = "use small letters, and digits and dots after dashes, such as torch-1.0"
        raise UsageError(Problem(f"{name[: LONGEST_ID + 1]!r} cannot name an environment", hint=hint))
    content = {
        "framework": installed.framework,
        "release": installed.release,
        "python": installed.python_version,
        "requirements": [installed.framework],
    }
    try:
        environment = Environment.model_validate(content)
    except ValidationError as error:
        message = f"{installed.python} says of itself what cannot be: {content!r:.300}"
        raise UsageError(Problem(message, hint="choose another interpreter with --python")) from error
    presets = {
        key: preset.model_copy(update={"select": tuple(map(_for_any_environment, preset.select))})
        for key, preset in matrix.presets.items()
    }
    return matrix.model_copy(update={"environments": {name: environment}, "presets": presets})


def _for_any_environment(selector: Selector) -> Selector:
    return selector.model_copy(update={"environments": ()})
