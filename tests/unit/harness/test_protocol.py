"""Messages survive the pipe unchanged, except that numbers that JSON cannot hold become None."""

import base64
import contextlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.harness import protocol

Values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
Shapes = st.lists(st.integers(1, 4), max_size=3)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), Values, max_size=5))
def test_decoding_an_encoded_message_returns_it(message: dict[str, Any]) -> None:
    assert protocol.decode(protocol.encode(message)) == message


@settings(max_examples=40)
@given(st.dictionaries(st.text(), Values, max_size=5))
def test_an_encoded_message_is_one_line_of_ascii(message: dict[str, Any]) -> None:
    line = protocol.encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()


def test_equal_messages_are_encoded_as_equal_lines() -> None:
    assert protocol.encode({"b": 1, "a": (2.5, "ö")}) == b'{"a": [2.5, "\\u00f6"], "b": 1}\n'
    assert protocol.encode({"a": [2.5, "ö"], "b": 1}) == protocol.encode({"b": 1, "a": (2.5, "ö")})


def test_numbers_that_json_cannot_hold_become_none_at_any_depth() -> None:
    message = {"loss": [1.0, math.nan], "facts": {"error": math.inf, "errors": ({"x": -math.inf},)}, 3: True}
    assert protocol.plain(message) == {
        "loss": [1.0, None],
        "facts": {"error": None, "errors": [{"x": None}]},
        "3": True,
    }
    assert protocol.decode(protocol.encode({"loss": [math.nan]})) == {"loss": [None]}


def test_a_numpy_double_is_encoded_as_a_number() -> None:
    assert protocol.encode({"seconds": np.float64(0.1)}) == b'{"seconds": 0.1}\n'
    assert protocol.encode({"seconds": np.float64("nan")}) == b'{"seconds": null}\n'


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"[1]\n",
        b"3\n",
        b"null\n",
        b'"text"\n',
        b"{\n",
        b'{"a": 1} trailing\n',
        b"\xff\xfe\n",
        '{"ö": 1}'.encode(),
    ],
)
def test_decoding_a_line_that_is_no_message_raises_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the message depends on the line
        protocol.decode(line)


@given(st.binary(max_size=60))
def test_decoding_garbage_raises_nothing_but_value_error(line: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(protocol.decode(line), dict)


@given(Shapes, st.randoms(use_true_random=False))
def test_unpacking_a_packed_array_returns_its_shape_and_bits(shape: list[int], draw: Any) -> None:
    array = np.array([draw.uniform(-1e300, 1e300) for _ in range(math.prod(shape))]).reshape(shape)
    unpacked: Any = protocol.unpack(protocol.decode(protocol.encode(protocol.pack(array))))
    assert unpacked.shape == array.shape
    assert unpacked.dtype == np.float64
    assert unpacked.tobytes() == array.tobytes()


def test_nan_and_infinity_survive_in_a_packed_array() -> None:
    unpacked: Any = protocol.unpack(protocol.pack(np.array([math.nan, math.inf, -0.0])))
    assert np.isnan(unpacked[0])
    assert unpacked[1] == math.inf
    assert math.copysign(1, unpacked[2]) == -1


def test_packed_bytes_are_little_endian_doubles_in_row_order() -> None:
    transposed = np.array([[1.0, 2.0], [3.0, 4.0]], ">f4").T
    packed = protocol.pack(transposed)
    assert packed["shape"] == [2, 2]
    assert base64.b64decode(packed["data"]) == np.array([1.0, 3.0, 2.0, 4.0], "<f8").tobytes()


def test_unpacking_data_that_do_not_fill_the_shape_raises_value_error() -> None:
    packed = protocol.pack(np.zeros(4))
    with pytest.raises(ValueError, match="reshape"):
        protocol.unpack({**packed, "shape": [3]})
