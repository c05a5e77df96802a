"""The inner loop begins with the tests of what changed, and ``--need`` knows its names."""

import pytest

from tests import quick
from tests.support import needs


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["runner/gpu/clocks/lease.py"], ["gpu/clocks/test_lease.py"]),
        (["runner/backends/docker/client.py"], ["backends/docker"]),
        (["runner/analysis/compare/__init__.py"], ["analysis/test_compare.py", "analysis/compare"]),
        (["runner/report/templates/page.html.j2", "README.md", "tests/conftest.py"], []),
        (["tests/unit/core/test_units.py", "runner/core/units.py"], ["core/test_units.py"]),
        (["runner/backends/docker/client.py", "runner/backends/docker/cache.py"], ["backends/docker"]),
    ],
)
def test_a_module_has_the_tests_of_its_name_or_those_of_its_folder(changed: list[str], expected: list[str]) -> None:
    tests = quick.tests_of([quick.ROOT / name for name in changed])
    assert [path.relative_to(quick.UNIT).as_posix() for path in tests] == expected


def test_needs_are_named_with_commas_or_one_by_one_and_an_unknown_name_lists_the_known() -> None:
    assert needs.named(["docker,slurm", "faults"]) == {"docker", "slurm", "faults"}
    assert needs.named([]) == frozenset()
    with pytest.raises(pytest.UsageError, match=r"'engine'; it knows docker, postgresql, slurm"):
        needs.named(["docker,engine"])
