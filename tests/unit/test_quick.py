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


def test_tests_that_import_what_changed_and_those_that_read_the_project_can_break() -> None:
    affected = names(["runner/search/bisect/measuring.py", "docs/index.md"])
    assert {"search/bisect/test_bisect.py", "test_documentation.py"} < affected
    assert "core/test_units.py" not in affected
    assert "search/bisect/test_bisect.py" in names(["runner/core/units.py"])  # through others
    assert "core/test_units.py" not in names(["docs/index.md"])


@pytest.mark.parametrize("changed", ["runner/report/templates/page.html.j2", "tests/conftest.py", "matrix.yaml"])
def test_what_no_import_names_can_break_all_tests(changed: str) -> None:
    assert len(names([changed, "runner/cli/console.py"])) == len(quick.unit_tests()) > 200


def names(changed: list[str]) -> set[str]:
    affected = quick.affected_tests([quick.ROOT / name for name in changed])
    return {path.relative_to(quick.UNIT).as_posix() for path in affected}


def test_needs_are_named_with_commas_or_one_by_one_and_an_unknown_name_lists_the_known() -> None:
    assert needs.named(["docker,slurm", "faults"]) == {"docker", "slurm", "faults"}
    assert needs.named([]) == frozenset()
    with pytest.raises(pytest.UsageError, match=r"'engine'; it knows docker, postgresql, slurm"):
        needs.named(["docker,engine"])
