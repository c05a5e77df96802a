"""The examples of a network's inputs that ``--input`` gives: shapes and types, whose numbers ``random`` draws."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runner.core.errors import Problem, UsageError
from runner.core.text import printable
from runner.matrix.model_file.literals import CASE_NAME

FLOAT = "float32"
BOUNDS = {"int64": 2, "int32": 2, "uint8": 256, "bool": 2}
"""Type -> what its numbers are below where no bound is typed; 0 and 1 suit every embedding and every loss."""
TYPES = (FLOAT, *BOUNDS)
LARGEST = 1 << 31
"""Of a length and of a bound: the numbers of NumPy's RandomState are below it."""
INPUT = re.compile(r"(?P<shape>\d{1,12}(x\d{1,12})*)(:(?P<type>\w+)(<(?P<below>\d{1,12}))?)?")
FORM = "write a shape, and a type unless it is float32: --input 8x3x224x224, --input '8x128:int64<1000'"


@dataclass(frozen=True, slots=True)
class ExampleInput:
    """An array that a network is called with.

    Attributes:
        shape: its lengths.
        type: one of TYPES; floats take the precision of the cell.
        below: whole numbers are drawn from 0 to below this; 0 for floats, which are drawn from a normal distribution.
    """

    shape: tuple[int, ...]
    type: str = FLOAT
    below: int = 0

    @property
    def label(self) -> str:
        """Its shape, and its type unless that is float32, as a part of the name of a case."""
        shape = "x".join(map(str, self.shape))
        return shape if self.type == FLOAT else f"{shape}-{self.type}"


def parse_input(text: str) -> ExampleInput:
    """Return an example from a value of ``--input``.

    Raises:
        UsageError: it has another form, or an unknown type.

    >>> parse_input("1x3x64x64")
    ExampleInput(shape=(1, 3, 64, 64), type='float32', below=0)
    >>> parse_input("8x128:int64<1000")
    ExampleInput(shape=(8, 128), type='int64', below=1000)
    """
    match = INPUT.fullmatch(text)
    if match is None:
        raise UsageError(Problem(f"--input {printable(text, 100)} is no shape", hint=FORM))
    kind = match["type"] or FLOAT
    if kind not in TYPES:
        close = difflib.get_close_matches(kind[:100], TYPES, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(TYPES)}"
        raise UsageError(Problem(f"--input {text}: there is no type {kind!r}", hint=hint))
    shape = tuple(map(int, match["shape"].split("x")))
    bounds = [int(match["below"])] if match["below"] else []
    if match["below"] and kind in {FLOAT, "bool"}:
        message = f"--input {text}: only whole numbers have a bound"
        raise UsageError(Problem(message, hint=f"leave <{match['below']} out, or choose int64"))
    if not all(0 < number <= LARGEST for number in (*shape, *bounds)):
        raise UsageError(Problem(f"--input {text}: lengths and bounds are from 1 to {LARGEST}", hint=FORM))
    return ExampleInput(shape, kind, *(bounds or [BOUNDS.get(kind, 0)]))


def case_name(inputs: Sequence[ExampleInput]) -> str:
    """Return the name of the case that has some examples; two that differ in a bound alone have the same.

    >>> case_name([parse_input("1x3x64x64")]), case_name([parse_input("8x128:int64<1000"), parse_input("8x1")])
    ('1x3x64x64', '8x128-int64_8x1')
    """
    names = ("_".join(each.label for each in inputs), f"{inputs[0].label}_and-{len(inputs) - 1}-more")
    return next((name for name in names if CASE_NAME.fullmatch(name)), f"{len(inputs)}-inputs")
