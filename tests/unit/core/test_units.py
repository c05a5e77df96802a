"""Lengths of time as people type them."""

import pytest

from runner.core.errors import UsageError
from runner.core.units import seconds


@pytest.mark.parametrize(("text", "length"), [("90s", 90), ("30m", 1800), ("5 min", 300), ("1.5h", 5400)])
def test_lengths_of_time(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "30", "m", "-3m", "0s", "1d"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        seconds(text)
