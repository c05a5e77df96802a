"""Columns of text."""

from runner.analysis.tables import _categories


def test_texts_are_those_of_each_value_even_of_values_that_are_equal() -> None:
    assert list(_categories(["b", None, "a", "b", ""])) == ["b", "", "a", "b", ""]
    assert list(_categories([1, True, 1.0, "1", None, {"b": 1}])) == ["1", "True", "1.0", "1", "", '{"b": 1}']
    assert list(_categories(["b", None, "a"]).categories) == ["", "a", "b"]
