"""The names of APIs: every implementation of every framework has one, and no two of a framework the same."""

from runner.catalog.api_names import API_NAMES
from runner.harness.adapters import implementations
from runner.matrix import FRAMEWORKS


def test_every_implementation_has_a_name_that_no_other_of_its_framework_has() -> None:
    slugs = {framework: [each.slug for each in implementations(framework)] for framework in FRAMEWORKS}
    assert {slug for of_framework in slugs.values() for slug in of_framework} == set(API_NAMES)
    for of_framework in slugs.values():
        names = [API_NAMES[slug] for slug in of_framework]
        assert len(names) == len(set(names))
