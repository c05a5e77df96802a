"""Operators of two releases are matched by name, and their changes add up to that of the step."""

from typing import Any

import pytest

from runner.analysis.profile_changes import LEFT_OUT, OUTSIDE, OperatorChanges, compare_profiles
from runner.core.model.profiles import FurtherOperators, ProfiledOperator, StepProfile


def profile(step: float, *rows: tuple[str, float, float, float], **more: Any) -> StepProfile:
    """Return a profile of rows with name, calls, host seconds and device seconds."""
    names = ("name", "calls", "host_seconds", "device_seconds")
    tables: list[dict[str, Any]] = [dict(zip(names, row, strict=True), total_seconds=row[2]) for row in rows]
    rows_of_profile = tuple(ProfiledOperator(**table) for table in tables)
    return StepProfile(reason="", step_seconds=step, rows=rows_of_profile, **more)


def changes(of: OperatorChanges) -> dict[str, float]:
    """Return name -> the change in seconds, in the order of the operators."""
    return {operator.name: round(operator.change, 9) for operator in of.operators}


def test_names_of_early_and_late_releases_match() -> None:
    early = profile(1.0, ("addmm", 2, 0.5, 0.0), ("AddmmBackward", 2, 0.25, 0.0))
    late = profile(2.0, ("aten::addmm", 2, 1.5, 0.0), ("AddmmBackward0", 2, 0.125, 0.0))
    (host,) = compare_profiles(early, late)
    assert changes(host) == {"addmm": 1.0, OUTSIDE: 0.125, "AddmmBackward": -0.125}
    assert (host.clock, host.base_seconds, host.other_seconds) == ("host", 1.0, 2.0)
    assert host.share(host.operators[0]) == 1.0


def test_an_operator_of_one_side_alone_is_shown_as_such() -> None:
    (host,) = compare_profiles(profile(1.0, ("mm", 60, 1.0, 0.0)), profile(0.5, ("mkldnn_rnn_layer", 1, 0.5, 0.0)))
    first, second = host.operators
    assert (first.name, first.other, first.change) == ("mm", None, -1.0)
    assert (second.name, second.base, second.change) == ("mkldnn_rnn_layer", None, 0.5)


def test_rows_with_the_same_canonical_name_are_one() -> None:
    both = profile(3.0, ("ViewBackward0", 1, 1.0, 0.0), ("ViewBackward1", 2, 2.0, 0.0))
    (host,) = compare_profiles(profile(3.0, ("ViewBackward", 3, 2.5, 0.0)), both)
    view = next(operator for operator in host.operators if operator.name == "ViewBackward")
    assert view.other == (3, 3.0)


def test_changes_add_up_to_that_of_the_step_with_what_no_operator_takes_and_what_is_left_out() -> None:
    left_out = FurtherOperators(rows=7, host_seconds=0.25)
    base = profile(1.0, ("mm", 1, 0.5, 0.0), left_out=left_out)
    (host,) = compare_profiles(base, profile(3.0, ("mm", 1, 1.0, 0.0)))
    assert changes(host) == {OUTSIDE: 1.75, "mm": 0.5, LEFT_OUT: -0.25}
    assert sum(changes(host).values()) == pytest.approx(3.0 - 1.0)


def test_threads_that_take_longer_together_than_the_step_leave_nothing_outside() -> None:
    (host,) = compare_profiles(profile(1.0, ("mm", 1, 1.5, 0.0)), profile(1.0, ("mm", 1, 1.75, 0.0)))
    assert changes(host) == {"mm": 0.25}


def test_device_and_host_are_compared_apart_the_device_first() -> None:
    base = profile(1.0, ("mm", 1, 0.125, 0.5))
    device, host = compare_profiles(base, profile(1.5, ("mm", 1, 0.25, 1.0)))
    assert (device.clock, changes(device)) == ("device", {"mm": 0.5})
    assert (host.clock, changes(host)) == ("host", {OUTSIDE: 0.375, "mm": 0.125})


def test_a_profile_without_rows_is_compared_with_nothing() -> None:
    sound = profile(1.0, ("mm", 1, 1.0, 0.0))
    assert compare_profiles(sound, StepProfile(reason="no profiler")) == ()
    assert compare_profiles(None, sound) == ()
