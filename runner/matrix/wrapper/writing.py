"""Write a wrapper: the text of a model file for a network that was only named."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from runner.matrix.wrapper.example_inputs import FLOAT, ExampleInput, case_name
from runner.matrix.wrapper.subject import Kind, Subject

if TYPE_CHECKING:
    import jinja2

RATE = 0.01
"""The learning rate of SGD, which trains what has no optimizer of its own; PyTorch's and Keras's examples have it."""
TITLE = """\
{name}, made into a model file by `runner wrap`.

docs/how-to/measure-your-network.md says what else such a file may have.
"""


def written(subject: Subject, inputs: Sequence[ExampleInput]) -> str:
    """Return the text of the wrapper of a network.

    Args:
        subject: how the network is imported and built.
        inputs: examples of its inputs; the wrapper draws their numbers from ``random``.
    """
    shapes = [list(each.shape) for each in inputs]
    cases = f"\nCASES = {json.dumps({case_name(inputs): {'shapes': shapes}})}" if inputs else ""
    array = ARRAYS[subject.kind]
    lines = [f"            {array(_drawn(number, each), _type(each))},\n" for number, each in enumerate(inputs)]
    given = ["device"] if subject.kind.startswith(("torch", "lightning")) else []
    return (
        _templates()
        .get_template(f"{subject.kind}.j2")
        .render(
            title=TITLE.format(name=subject.name.replace("\\", "/").replace('"', "'")),
            imports=subject.imports,
            cases=cases,
            parameters=", ".join(
                [*(["random"] if inputs else []), *given, "precision", *(["shapes"] if inputs else [])]
            ),
            inputs=f"[\n{''.join(lines)}        ]" if lines else "[]",
            build=subject.build,
            taken=subject.forward_inputs,
            rate=RATE,
        )
    )


def _drawn(number: int, each: ExampleInput) -> str:
    """Return the expression that draws the numbers of an example."""
    if each.type == FLOAT:
        return f"random.standard_normal(shapes[{number}])"
    return f"random.randint({each.below}, size=shapes[{number}])"


def _type(each: ExampleInput) -> str:
    """Return the type of an example; empty for floats, which have that of the precision."""
    return "" if each.type == FLOAT else each.type


def _torch(numbers: str, kind: str) -> str:
    return f"torch.from_numpy({numbers}).to(device, {f'torch.{kind}' if kind else 'self.type'})"


def _tensorflow(numbers: str, kind: str) -> str:
    return f"tf.cast({numbers}, {_quoted(kind)})"


def _jax(numbers: str, kind: str) -> str:
    return f"jax.numpy.asarray({numbers}, {_quoted(kind)})"


def _numpy(numbers: str, kind: str) -> str:
    return f"{numbers}.astype({_quoted(kind)})"


def _quoted(kind: str) -> str:
    return f'"{kind}"' if kind else "self.type"


ARRAYS: Mapping[Kind, Callable[[str, str], str]] = {
    "torch_module": _torch,
    "lightning_module": _torch,
    "torch_function": _torch,
    "keras_model": _tensorflow,
    "tensorflow_function": _tensorflow,
    "jax_function": _jax,
    "numpy_function": _numpy,
}
"""Kind -> what makes the framework's array of numbers, in a type that has a name or in that of the precision."""


@cache
def _templates() -> "jinja2.Environment":
    """Return what reads the templates; jinja2 takes long to import."""
    import jinja2

    return jinja2.Environment(  # noqa: S701 - no HTML
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
