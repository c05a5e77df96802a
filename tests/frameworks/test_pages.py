"""What the documentation tells people to write, does what it says."""

import re
from pathlib import Path

import pytest

from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

PAGE = drive.ROOT / "docs" / "how-to" / "add-an-implementation.md"


@pytest.mark.parametrize("environment", ["torch-1.0", "torch-2.x"], scope="module")
def test_the_class_on_the_page_is_all_that_a_new_implementation_takes(python: Path, environment: str) -> None:
    assert environment
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
    name = re.findall(r"^class (\w+)", code)[0]
    (slug,) = re.findall(r'slug = "(.*)"', code)
    more = {"harness/adapters/torch/modules.py": f"\n{code}\nMODULES += ({name},)\n"}
    with drive.server(python, "torch", more=more) as client:
        client.hello()
        for shape in ("lstm-step", "ce-4-both-ways", "lm", "template"):
            result = client.measure(slug, drive.SHAPES[shape])
            assert (shape, result["status"], result.get("reason")) == (shape, "ok", None)
