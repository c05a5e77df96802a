"""Networks that ``--model`` names without a model file: their wrapper is written, and read as any other model file.

``named_model`` parses what ``--model`` names, ``example_inputs`` what ``--input`` gives; ``file_subject`` with
``class_kinds`` reads the user's file, ``libraries`` knows the networks of libraries, and ``writing`` fills a template.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.matrix.model_file import Network, read_network, read_wrapper
from runner.matrix.wrapper.example_inputs import parse_input
from runner.matrix.wrapper.file_subject import file_subject
from runner.matrix.wrapper.libraries import library_subject
from runner.matrix.wrapper.named_model import NamedModel, parse_model
from runner.matrix.wrapper.writing import written

__all__ = ["NamedModel", "Wrapper", "parse_model", "read_model", "wrapper_of"]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The model file of a network that was only named.

    Attributes:
        name: of the file.
        text: its content.
        root: the folder that it belongs into.
    """

    name: str
    text: str
    root: Path


def wrapper_of(model: NamedModel, inputs: Sequence[str]) -> Wrapper:
    """Return the wrapper of a class, a function or a network of a library; nothing of it is run.

    Args:
        model: names it.
        inputs: the values of ``--input``.

    Raises:
        UsageError: it is a model file, which needs no wrapper, or a value of ``--input`` has another form.
        MatrixError: its file cannot be read, lacks the name, or does not take the examples.
    """
    if not model.is_wrapped:
        hint = f"name a class or a function of it: {model.text}:NAME"
        raise UsageError(Problem(f"{model.text} is a file, and a wrapper is of a class or a function", hint=hint))
    examples = [parse_input(each) for each in inputs]
    if model.library and not examples:
        message = f"{model.text} is called with an example of its input, and none is given"
        example = "1x224x224x3" if model.library == "keras" else "1x3x224x224"
        raise UsageError(Problem(message, hint=f"give its shape: --input {example}, or --input '2x64:int64<1000'"))
    subject = library_subject(model) if model.library else file_subject(model, len(examples))
    return Wrapper(f"{model.workload.replace('-', '_')}_wrapper.py", written(subject, examples), subject.root)


def read_model(model: NamedModel, inputs: Sequence[str]) -> Network:
    """Return the network that a value of ``--model`` names: that of a model file, or of the wrapper of what is named.

    Raises:
        UsageError, MatrixError: as ``wrapper_of`` and ``read_network`` raise them.
    """
    if not model.is_wrapped:
        assert model.path is not None
        return read_network(model.path)
    wrapper = wrapper_of(model, inputs)
    return read_wrapper(wrapper.root / wrapper.name, wrapper.text, model.text)
