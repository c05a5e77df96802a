"""The examples that ``--input`` gives, and the names of their cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.errors import UsageError
from runner.matrix.model_file.literals import CASE_NAME
from runner.matrix.wrapper.example_inputs import TYPES, ExampleInput, case_name, parse_input

FORMS = {
    "1x3x64x64": ExampleInput((1, 3, 64, 64)),
    "7": ExampleInput((7,)),
    "8x128:float32": ExampleInput((8, 128)),
    "8x128:int64": ExampleInput((8, 128), "int64", 2),
    "8x128:int32<1000": ExampleInput((8, 128), "int32", 1000),
    "2x2:uint8": ExampleInput((2, 2), "uint8", 256),
    "2x2:bool": ExampleInput((2, 2), "bool", 2),
}


@pytest.mark.parametrize("text", FORMS)
def test_a_shape_may_have_a_type_and_a_bound(text: str) -> None:
    assert parse_input(text) == FORMS[text]


MISTAKES = {
    "": "--input  is no shape",
    "1x3x": "is no shape\nhint: write a shape, and a type unless it is float32: --input 8x3x224x224",
    "1,3,64": "--input 1,3,64 is no shape",
    "1X3": "is no shape",
    "-1x3": "is no shape",
    "8:int64<": "is no shape",
    "8<10": "is no shape",
    "8:int46": "there is no type 'int46'\nhint: did you mean int64?",
    "8:complex64": "hint: there are float32, int64, int32, uint8, bool",
    "8:float32<5": "only whole numbers have a bound\nhint: leave <5 out",
    "0x3": "lengths and bounds are from 1 to 2147483648",
    "999999999999": "lengths and bounds are from 1 to",
    "8:int64<0": "lengths and bounds are from 1 to",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_input(text)
    assert MISTAKES[text] in str(caught.value)
    assert "\nhint: " in str(caught.value)


NAMES = {
    ("1x3x64x64",): "1x3x64x64",
    ("8x128:int64<1000", "8x128:int64<2", "8"): "8x128-int64_8x128-int64_8",
    ("8x3x224x224",) * 4: "8x3x224x224_and-3-more",
    ("x".join(["64"] * 20),): "1-inputs",
}


@pytest.mark.parametrize("texts", NAMES)
def test_a_case_is_named_after_the_shapes(texts: tuple[str, ...]) -> None:
    assert case_name([parse_input(text) for text in texts]) == NAMES[texts]


SHAPES = st.lists(st.integers(1, 1 << 31), min_size=1, max_size=8)


@given(st.lists(st.tuples(SHAPES, st.sampled_from(TYPES)), min_size=1, max_size=6))
def test_every_example_has_a_name_that_a_case_can_have(examples: list[tuple[list[int], str]]) -> None:
    texts = [f"{'x'.join(map(str, shape))}:{kind}" for shape, kind in examples]
    assert CASE_NAME.fullmatch(case_name([parse_input(text) for text in texts]))
