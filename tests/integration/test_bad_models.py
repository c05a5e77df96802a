"""What a record says of each kind of bad network that fails in the environment, not when its file is read."""

import pytest

from runner.core.model import Record
from runner.harness.model.changing import LATER
from runner.harness.model.mistakes import NO_NETWORK, OF_A_FOLDER, OF_A_PACKAGE
from tests.support import models

BAD = {
    "import": "import cv_3000\nclass NumpyModel:\n    pass\n",
    "pillow": "import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\nimport PIL\n",
    "constructor": """
class NumpyModel:
    def __init__(self, random):
        self.x = random.rand(3) / 0 .real
        raise ValueError("no such width")
    def forward(self):
        return self.x
""",
    "nothing": "class NumpyModel:\n    def forward(self):\n        pass\n",
    "no-loss": "class NumpyModel:\n    def forward(self):\n        return 1.0\n    def train(self):\n        pass\n",
    "text": "class NumpyModel:\n    def forward(self):\n        return {'name': 'x'}\n",
    "nan": """
import numpy
class NumpyModel:
    def forward(self):
        return 1.0, numpy.array([1.0, numpy.nan])
""",
    "shapes": """
import numpy
class NumpyModel:
    calls = 0
    def __init__(self, random):
        self.weights = random.rand(4)
    def forward(self):
        self.calls += 1
        return numpy.ones((32 if self.calls < 30 else 16, 10)) * self.weights[0]
""",
    "changes": """
class NumpyModel:
    def __init__(self, random):
        self.weights, self.calls = random.rand(64, 64), 0
    def forward(self):
        self.calls += 1
        return self.weights @ self.weights if self.calls <= 12 else self.weights * 0
""",
    "changes-without-a-state": """
class NumpyModel:
    def __init__(self, random):
        self.numbers, self.calls = (random.rand(64, 64) * 100).astype(int), 0
    def forward(self):
        self.calls += 1
        return self.numbers @ self.numbers if self.calls <= 12 else self.numbers * 0
""",
    "lies": """
import numpy
class Equal(numpy.ndarray):
    def __array__(self, *arguments, **options):
        return RIGHT
    def __eq__(self, other):
        return True
class NumpyModel:
    def __init__(self, random):
        global RIGHT
        self.weights, self.calls = random.rand(64, 64), 0
        RIGHT = self.weights @ self.weights
    def forward(self):
        self.calls += 1
        return RIGHT if self.calls <= 12 else numpy.zeros((64, 64)).view(Equal)
""",
    "exit": "import sys\nclass NumpyModel:\n    def forward(self):\n        sys.exit(3)\n",
    "network": """
import socket
class NumpyModel:
    def __init__(self):
        try:
            socket.create_connection(("127.0.0.1", 1), 1)
        except OSError as error:
            raise RuntimeError("cannot download the weights") from error
    def forward(self):
        return 1.0
""",
    "no-method": "class NumpyModel:\n    def predict(self):\n        return 1.0\n",
    "syntax": "from layers import rectified\nimport other\nclass NumpyModel:\n    pass\n",
    "endless": "class NumpyModel:\n    def forward(self):\n        while True:\n            pass\n",
}
GOOD = {
    "prints": """
class NumpyModel:
    def forward(self):
        print("a line of the user")
        return 1.0
""",
    "forks": """
import os, time
class NumpyModel:
    def __init__(self):
        if os.fork() == 0:
            time.sleep(600)
    def forward(self):
        return 1.0
""",
}
EXPECTED = {
    "import": (
        "import",
        f"my_network.py:1: this environment has no module 'cv_3000': {OF_A_FOLDER.format('cv_3000')}",
    ),
    "pillow": (
        "import",
        f"my_network.py:3: this environment has no module 'PIL': {OF_A_PACKAGE.format('np-a', package='pillow')}",
    ),
    "constructor": ("crash", "my_network.py:5: ValueError: no such width"),
    "nothing": ("crash", "my_network.py:2: forward() returned None: return the outputs"),
    "no-loss": ("crash", "my_network.py:4: train() returned None: return the loss"),
    "text": (
        "crash",
        "my_network.py:2: forward() returned a str: return arrays or tensors, or tuples, lists or dicts of them",
    ),
    "nan": ("nan", "output 1 is not finite: 1 of 2 numbers"),
    "shapes": ("wrong-result", "the network changes its shapes: its outputs were (32, 10) and later (16, 10)"),
    **dict.fromkeys(
        ("changes", "changes-without-a-state", "lies"),
        (
            "wrong-result",
            LATER.format(
                "the output is off by 1.0e+00 of its norm, 1e-03 allowed; the base is the first call of a new object"
            ),
        ),
    ),
    "exit": ("crash", "my_network.py:4: SystemExit: 3"),
    "network": (
        "crash",
        f"my_network.py:8: RuntimeError: cannot download the weights; {NO_NETWORK}",
    ),
    "no-method": ("crash", "NumpyModel has no forward()"),
    "syntax": (
        "import",
        f"my_network.py:2: this environment has no module 'other': {OF_A_FOLDER.format('other')}",
    ),
    "endless": ("timeout", "not finished after 2 s"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, str]]:
    """The record and the log of each network; one server measures all, but for the one that waits for its time-out."""
    networks = {**BAD, **GOOD}
    ending = measured({name: networks[name] for name in networks if name != "endless"}, 60.0, tmp_path_factory)
    return {**ending, **measured({"endless": networks["endless"]}, 2.0, tmp_path_factory)}


def measured(
    networks: dict[str, str], timeout: float, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Record, str]]:
    """Return the record and the log of each network, whose rounds may take ``timeout`` seconds."""
    files = {name: models.files(text) for name, text in networks.items()}
    blocks = []
    for name, model in files.items():
        phases = ["train"] if name == "no-loss" else ["forward"]
        specification = models.spec(name, model, sizes={}, takes_precision=[], phases=phases)
        blocks.append(models.block(specification, ["np-a"]))
    plan = models.planned(blocks, list(files.values()), timeout=timeout, seconds=0.02)
    folder = tmp_path_factory.mktemp("models")
    return {record.cell.case: (record, log) for record, log in models.measured(plan, folder)}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_network_gets_a_class_and_a_sentence(name: str, outcomes: dict[str, tuple[Record, str]]) -> None:
    record, _ = outcomes[name]
    assert (record.failure, record.reason) == EXPECTED[name]
    assert not record.seconds


def test_what_a_network_prints_is_in_the_log(outcomes: dict[str, tuple[Record, str]]) -> None:
    record, log = outcomes["prints"]
    assert (record.status, record.reason) == ("ok", None)
    assert "a line of the user" in log


def test_a_network_that_forks_is_measured(outcomes: dict[str, tuple[Record, str]]) -> None:
    record, _ = outcomes["forks"]
    assert (record.status, record.reason) == ("ok", None)


def test_a_network_that_returns_a_constant_is_unchecked(outcomes: dict[str, tuple[Record, str]]) -> None:
    check = outcomes["prints"][0].facts["model_check"]
    assert check["by"] == "shapes"
    assert check["reason"].startswith(
        "NumpyModel has no state(), and no attribute is an array of floats, and its outputs"
    )
    assert "show nothing of what was computed: no data are drawn from `random`" in check["reason"]
