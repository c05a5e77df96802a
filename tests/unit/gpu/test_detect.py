"""Which of the GPUs that the driver shows this process may use."""

import pytest

from runner.core.model import Gpu
from runner.gpu.detect import visible

GPUS = tuple(Gpu(uuid=f"GPU-{c}1", name="H200", capability=(9, 0), driver="580.1") for c in "abc")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("2", "c"),
        ("1,0", "ba"),
        ("GPU-b", "b"),
        ("GPU-c1, 0", "ca"),
        ("0,7,1", "a"),  # CUDA stops at the first that is not there
        ("GPU-", ""),  # three begin like that
        ("", ""),
        ("-1", ""),
    ],
)
def test_the_environment_chooses_and_orders(names: str, expected: str) -> None:
    assert [gpu.uuid[4] for gpu in visible(GPUS, names)] == list(expected)
