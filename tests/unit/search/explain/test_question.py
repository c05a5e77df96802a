"""What explain refuses before anything is resolved or built."""

import pytest

from runner.core.errors import UsageError
from runner.search.explain.question import TypedReleases, requested
from runner.session.options import Options

CELL = "nn-lstm/rnn-step/lstm-b32-h128/forward/fp32"


@pytest.mark.parametrize(
    ("options", "typed", "message"),
    [
        (Options(selectors=[CELL]), TypedReleases(good="torch-1.12", bad=""), "explain takes two releases"),
        (Options(selectors=[""]), TypedReleases(good="torch-1.12", bad="torch-2.x"), "a test, or a network"),
        (Options(selectors=[CELL], backend="host"), TypedReleases(good="a", bad="b"), "the backend host builds none"),
        (Options(selectors=[CELL], threads="1,2"), TypedReleases(good="a", bad="b"), "with one thread count"),
        (Options(selectors=[CELL]), TypedReleases(good="a", bad="b", metric="size"), "is the same in every round"),
        (Options(selectors=["a/b"]), TypedReleases(good="a", bad="b"), "is not a test"),
        (
            Options(selectors=[CELL], device="cpu", backend="venv"),
            TypedReleases(good="torch-1.12", bad="torch-1.12"),
            "name 1 environments",
        ),
        (
            Options(selectors=[CELL], device="cpu", backend="venv"),
            TypedReleases(good="torch-1.12", bad="tf-1.15"),
            "torch-1.12 has torch, and tf-1.15 has tensorflow",
        ),
    ],
)
def test_what_cannot_be_explained_is_refused(options: Options, typed: TypedReleases, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        requested(options, typed)
