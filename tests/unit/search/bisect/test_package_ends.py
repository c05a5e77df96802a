"""What varies between two ends that name a package."""

import pytest

from runner.core.errors import UsageError
from runner.search.bisect.package_ends import PackageEnds, package_ends


@pytest.mark.parametrize(
    ("axis", "good", "bad", "expected"),
    [
        ("release", "torch==2.8.0", "torch==2.9.0", ("release", "torch==2.8.0", "torch==2.9.0", "env")),
        ("cuda", "11.3", "11.7", ("cuda", "11.3", "11.7", "env")),
        ("NumPy", "numpy==1.26.4", "2.2.6", ("numpy", "1.26.4", "2.2.6", "env")),
        (
            "numba",
            "tf==2.8.0,scipy==1.9.0,numba==0.65.0@py3.9",
            "tensorflow==2.8.0,numba==0.66.0,scipy==1.9.0@py3.9",
            ("numba", "0.65.0", "0.66.0", "tensorflow==2.8.0,scipy==1.9.0@py3.9"),
        ),
        (  # the environment of the test has another release: each end has one of its own
            "release",
            "torch==2.8.0,timm==1.0.0",
            "torch==2.9.0,timm==1.0.0",
            ("release", "torch==2.8.0,timm==1.0.0", "torch==2.9.0,timm==1.0.0", "env"),
        ),
    ],
)
def test_ends_that_differ_in_one_package_name_it(
    axis: str, good: str, bad: str, expected: tuple[str, str, str, str]
) -> None:
    assert package_ends(PackageEnds(axis, good, bad, "env")) == expected


@pytest.mark.parametrize(
    ("axis", "good", "bad", "message"),
    [
        ("release", "numpy==2.2.6,a==1,b==1", "numpy==2.2.6,a==2,b==2", "the ends differ in a and b"),
        ("release", "numpy==2.2.6,a==1", "numpy==2.2.6,a==1", "the ends differ in nothing"),
        ("release", "numpy==2.2.6,a==1", "numpy==2.2.6", "the ends differ in a"),
        ("numba", "numpy==2.2.6,a==1", "numpy==2.2.6,a==2", "the ends differ in a, and the axis is numba"),
        ("num ba", "1", "2", "'num ba' is no axis"),
        ("../numba", "1", "2", "is no axis"),
    ],
)
def test_ends_that_name_no_package_or_several_are_refused(axis: str, good: str, bad: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        package_ends(PackageEnds(axis, good, bad, ""))
