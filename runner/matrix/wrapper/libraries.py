"""Networks that libraries name: how each is imported and built, with random weights."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from runner.core.errors import MatrixError, Problem
from runner.matrix.wrapper.named_model import NamedModel
from runner.matrix.wrapper.subject import Subject

NOWHERE = Path(os.devnull)
"""A folder without files: what a library's network needs is in the environment."""
CONFIGURATION = """\
import transformers
from pathlib import Path

FILES = [{file}]
CONFIG = transformers.AutoConfig.from_pretrained(str(Path(__file__).with_name(FILES[0])), use_cache=False)"""


def library_subject(model: NamedModel) -> Subject:
    """Return what the wrapper of a network of a library is written for; nothing is looked up in the library.

    Raises:
        MatrixError: the file of a configuration is missing.
    """
    return SUBJECTS[model.library](model)


def _hugging_face(model: NamedModel) -> Subject:
    assert model.path is not None
    if not os.path.isfile(model.path):  # noqa: PTH113  Path.is_file raises for a name that is too long
        raise MatrixError(Problem(f"there is no {model.path}", hint="name a configuration: --model hf:config.json"))
    imports = CONFIGURATION.format(file=json.dumps(model.path.name))
    build = f"transformers.AutoModel.from_config({_arguments('CONFIG', model)})"
    return Subject("torch_module", f"hf:{model.path.name}", imports, build, model.path.parent)


def _keras(model: NamedModel) -> Subject:
    has_weights = model.call is not None and "weights" in model.call.names
    arguments = _arguments("", model, "" if has_weights else "weights=None")
    imports = "from tensorflow import keras"
    return Subject("keras_model", model.text, imports, f"keras.{model.name}({arguments})", NOWHERE)


def _timm(model: NamedModel) -> Subject:
    build = f"timm.create_model({_arguments(json.dumps(model.name), model)})"
    return Subject("torch_module", model.text, "import timm", build, NOWHERE)


def _torchvision(model: NamedModel) -> Subject:
    build = f"torchvision.models.{model.name}({_arguments('', model)})"
    return Subject("torch_module", model.text, "import torchvision", build, NOWHERE)


SUBJECTS: Mapping[str, Callable[[NamedModel], Subject]] = {
    "hf": _hugging_face,
    "keras": _keras,
    "timm": _timm,
    "torchvision": _torchvision,
}
"""Library -> what builds its networks; the keys are those of ``named_model.LIBRARIES``."""


def _arguments(first: str, model: NamedModel, last: str = "") -> str:
    """Return the arguments of a call: those that were typed between those of this program."""
    return ", ".join(filter(None, (first, model.call.arguments if model.call else "", last)))
