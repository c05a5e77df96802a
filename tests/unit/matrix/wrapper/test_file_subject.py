"""What is read of a class or a function of a user's file, and which mistakes are seen before anything is built."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError, UsageError
from runner.matrix.wrapper.file_subject import file_subject
from runner.matrix.wrapper.named_model import parse_model
from runner.matrix.wrapper.subject import Subject

MODULE = "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x, mask=None): ...\n"


def read(folder: Path, source: str, named: str = "Net", inputs: int = 1, file: str = "nets.py") -> Subject:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, "utf-8")
    return file_subject(parse_model(f"{path}:{named}"), inputs)


KINDS = {
    MODULE: "torch_module",
    "import torch.nn as nn\nclass Net(nn.Module):\n    def forward(self, x): ...": "torch_module",
    "import torch\nclass Net(torch.nn.Sequential): ...": "torch_module",
    "from torch.nn import Module as M\nclass A(M):\n    def forward(self, x): ...\nclass Net(A): ...": "torch_module",
    "from torch import nn\nBase = nn.Module\nclass Net(Base):\n    def forward(self, x): ...": "torch_module",
    "import torch\nfrom transformers import PreTrainedModel\nclass Net(PreTrainedModel): ...": "torch_module",
    "import torch\nfrom .base import Base\nclass Net(Base):\n    def forward(self, x): ...": "torch_module",
    "import torch\nfrom layers import Net": "torch_module",
    "import torch\ndef Net(width=8): return torch.nn.Linear(width, 1)": "torch_module",
    "import torch\ndef Net(q, k=None): return q @ q": "torch_function",
    "import pytorch_lightning as pl\nclass Net(pl.LightningModule): ...": "lightning_module",
    "import torch\nfrom base import B\nclass Net(B):\n    def training_step(self, b, i): ...\n"
    "    def configure_optimizers(self): ...": "lightning_module",
    "import keras\nclass Net(keras.Model):\n    def call(self, x): ...": "keras_model",
    "import tensorflow as tf\nclass Net(tf.keras.Model): ...": "keras_model",
    "from tensorflow.keras.models import Sequential\nclass Net(Sequential): ...": "keras_model",
    "from tensorflow import keras\ndef Net(): return keras.Sequential()": "keras_model",
    "from tensorflow import keras\ndef Net(x): return keras.ops.relu(x)": "tensorflow_function",
    "import jax, numpy\n@jax.jit\ndef Net(x): return x": "jax_function",
    "import jax\nNet = jax.jit(lambda x: x)": "jax_function",
    "import numpy as np\ndef Net(x): return np.linalg.svd(x)": "numpy_function",
}


@pytest.mark.parametrize("source", KINDS)
def test_the_kind_shows_in_base_classes_parameters_and_imports(tmp_path: Path, source: str) -> None:
    assert read(tmp_path, source).kind == KINDS[source]


def test_nothing_of_the_file_is_run(tmp_path: Path) -> None:
    read(tmp_path, f"open('{tmp_path}/ran', 'w')\n{MODULE}")
    assert not (tmp_path / "ran").exists()


def test_arguments_in_parentheses_build_a_network(tmp_path: Path) -> None:
    built = read(tmp_path, "import torch\ndef make(width): return torch.nn.Linear(width, 1)", "make(8)")
    assert (built.kind, built.build, built.imports) == ("torch_module", "make(8)", "from nets import make")
    with_default = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, a, *, b=1): ...\n"
    assert read(tmp_path, f"{with_default}    def forward(self, x): ...", "Net(3, b=2)").build == "Net(3, b=2)"


BATCH = {
    "": None,
    "    def forward(self, x): ...": 1,
    "    def forward(self, x, y): ...": 2,
    "    def forward(self, x=None): ...": 1,
    "    def forward(self, *args): ...": 1,
}


@pytest.mark.parametrize("forward", BATCH)
def test_the_forward_pass_of_a_lightning_module_takes_the_first_inputs_of_a_batch(tmp_path: Path, forward: str) -> None:
    source = f"import lightning as L\nclass Net(L.LightningModule):\n    a = 1\n{forward}"
    assert read(tmp_path, source, inputs=2).forward_inputs == BATCH[forward]


INIT = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, width, *, depth): ...\n"
MISTAKES: dict[str, tuple[str, str, int, str]] = {
    "no such name": (MODULE, "Nett", 1, "nets.py:1:1: error: nets.py has no 'Nett'"),
    "a similar name": (MODULE, "Nett", 1, "hint: did you mean 'Net'?"),
    "no similar name": (MODULE, "Encoder", 1, "hint: it has Net"),
    "no base": ("class Net: ...", "Net", 1, "nets.py:1:7: error: no base class of Net shows that it is an nn.Module"),
    "a base of another file": ("from .base import B\nclass Net(B): ...", "Net", 1, "hint: import its framework in the"),
    "a base of Python": ("import abc\nclass Net(abc.ABC): ...", "Net", 1, "2:7: error: no base class of Net shows"),
    "flax": ("from flax import linen as nn\nclass Net(nn.Module): ...", "Net", 1, "2:7: error: no base class of Net"),
    "a data set": ("from torch.utils.data import Dataset\nclass Net(Dataset): ...", "Net", 1, "no base class of Net"),
    "no framework": ("def Net(x): ...", "Net", 1, "1:5: error: no import of nets.py shows the framework of Net"),
    "theano": ("import theano\ndef Net(x): ...", "Net", 1, "no import of nets.py shows the framework of Net"),
    "an object": ("import torch\nNet = torch.nn.Linear(1, 1)", "Net", 1, "2:7: error: Net is an object that exists"),
    "no input": (MODULE, "Net", 0, "nets.py:3:9: error: Net.forward() needs the parameter 'x'\n"),
    "its hint": (MODULE, "Net", 0, "hint: give an example of its shape, and repeat the option for further inputs: --"),
    "too many inputs": (MODULE, "Net", 3, "3:9: error: Net.forward() takes 2 arguments, and --input gives 3"),
    "one of two": (
        MODULE.replace("mask=None", "mask"),
        "Net",
        1,
        "Net.forward() needs the parameter 'mask', and --input gives 1 of 2",
    ),
    "no forward": ("from torch import nn\nclass Net(nn.Module): ...", "Net", 1, "2:7: error: Net has no forward()"),
    "no input of Keras": ("import keras\nclass Net(keras.Model): ...", "Net", 0, "Net is called with an example of"),
    "no input of a factory": ("import torch\ndef Net(): ...", "Net", 0, "2:5: error: Net is called with an example of"),
    "an argument": (INIT, "Net", 1, "2:7: error: Net needs the parameter 'width'\n"),
    "how to give it": (INIT, "Net", 1, "nets.py:Net(width=..., depth=...)'"),
    "what is still lacking": (INIT, "Net(3)", 1, "nets.py:Net(3, depth=...)'"),
    "an unknown argument": (INIT, "Net(3, dept=3)", 1, "Net has no parameter 'dept'\n"),
    "a similar argument": (INIT, "Net(3, dept=3)", 1, "hint: did you mean 'depth'?"),
    "an array": ("import jax\ndef Net(x, y): ...", "Net", 1, "Net needs the parameter 'y', and --input gives 1 of 2"),
    "called arrays": ("import jax\ndef Net(x): ...", "Net(3)", 1, "Net is a function of arrays, which --input gives"),
    "no Python": ("class Net", "Net", 1, "nets.py:1:10: error: this is not Python"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_place_and_a_hint(tmp_path: Path, name: str) -> None:
    source, named, inputs, expected = MISTAKES[name]
    with pytest.raises(MatrixError) as caught:
        read(tmp_path, source, named, inputs)
    assert expected in str(caught.value).replace(f"{tmp_path}/", "")
    assert "\nhint: " in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"there is no .*nets\.py"):
        file_subject(parse_model(f"{tmp_path}/nets.py:Net"), 1)


def test_the_class_of_a_model_file_needs_no_wrapper(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"TorchModel is the class of a model file.*\nhint: write --model nets\.py"):
        file_subject(parse_model("nets.py:TorchModel"), 1)
