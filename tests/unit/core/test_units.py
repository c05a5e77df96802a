"""The units in which times, sizes and rates are shown, and durations as people type them."""

import pytest

from runner.core.errors import UsageError
from runner.core.units import disk_size, duration, memory, parse_duration, rate, step_time, time_unit


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (9.2, "9 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (75.0, "1 min 15 s"),
        (3599.6, "1 h 00 min"),
        (7260.0, "2 h 01 min"),
        (90000.0, "25 h 00 min"),
    ],
)
def test_duration_rounds_to_seconds_and_then_to_minutes(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("5 min", 300), ("1.5h", 5400), ("4m30s", 270), ("1 h 05 min", 3900)],
)
def test_parse_duration_gives_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "-3m", "0s", "1d", "30s4m", "4m30"])
def test_parse_duration_refuses_anything_else(text: str) -> None:
    with pytest.raises(UsageError, match=f"cannot read '{text}'"):
        parse_duration(text)


def test_parse_duration_refuses_more_than_a_number_can_be() -> None:
    with pytest.raises(UsageError, match="cannot read '999"):
        parse_duration("9" * 400 + "h")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1234.5, "1234 s"), (1.0, "1.00 s"), (0.0123, "12.3 ms"), (0.0009996, "1000 µs"), (2.5e-7, "250 ns")],
)
def test_step_time_has_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert step_time(seconds) == text


def test_the_smallest_time_chooses_the_unit_of_all() -> None:
    unit = time_unit([0.0005, None, 2.0])
    assert [step_time(seconds, unit) for seconds in (0.0005, 2.0)] == ["500 µs", "2000000 µs"]


@pytest.mark.parametrize(
    ("byte_count", "text"),
    [
        (0, "0 MiB"),
        (12 << 20, "12 MiB"),
        (1 << 30, "1.0 GiB"),
        (8e9, "7.5 GiB"),
        (64 << 30, "64.0 GiB"),
        (141 << 30, "141 GiB"),
    ],
)
def test_memory_is_in_binary_units(byte_count: float, text: str) -> None:
    assert memory(byte_count) == text


@pytest.mark.parametrize(
    ("byte_count", "text"),
    [(0, "0 MB"), (49.4e6, "49 MB"), (592e6, "592 MB"), (1e9, "1.0 GB"), (1.93e9, "1.9 GB"), (107.4e9, "107.4 GB")],
)
def test_disk_size_is_in_decimal_units(byte_count: float, text: str) -> None:
    assert disk_size(byte_count) == text


@pytest.mark.parametrize(
    ("per_second", "unit", "text"),
    [
        (134e9, "FLOP", "134 GFLOP/s"),
        (33.4e12, "FLOP", "33.4 TFLOP/s"),
        (1979e12, "OP", "1979 TOP/s"),
        (79.3e6, "B", "0.0793 GB/s"),
        (516e9, "B", "516 GB/s"),
        (4.8e12, "B", "4.80 TB/s"),
    ],
)
def test_rate_has_a_decimal_prefix(per_second: float, unit: str, text: str) -> None:
    assert rate(per_second, unit) == text
