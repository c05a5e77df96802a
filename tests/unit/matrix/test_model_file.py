"""What is read from a model file without running it."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError, UsageError
from runner.core.model import ModelFiles
from runner.matrix.model_file import files, network_name, read_network
from tests.support.model_files import SOURCE, write_model

TORCH = "class TorchModel:\n    def __init__(self, **sizes): ...\n    def forward(self): ...\n"


def message_of(folder: Path, source: str) -> str:
    """Return the message about a model file, without the folder."""
    with pytest.raises(MatrixError) as caught:
        read_network(write_model(folder, source))
    return str(caught.value).replace(f"{folder}/", "")


def test_a_network_has_its_classes_cases_and_files(tmp_path: Path) -> None:
    network = read_network(write_model(tmp_path))
    assert sorted(network.files.files) == ["data/words.txt", "layers.py", "my_network.py"]
    assert network.files.files["data/words.txt"] == b"a b c\n"
    assert network.specs("my-network")["my-network/large"] == {
        "workload": "my-network",
        "name": "large",
        "family": "model",
        "seed": 0,
        "phases": ["compile", "compile-warm", "forward", "train"],
        "entry": "my_network.py",
        "files": network.files.digest,
        "sizes": {"width": 16, "kernel": [3, 3]},
        "classes": {"torch": "TorchModel", "numpy": "NumpyModel"},
        "methods": {"torch": ["forward", "train"], "numpy": ["forward", "train"]},
        "takes_weights": ["torch", "numpy"],
        "takes_precision": ["torch", "numpy"],
        "tolerance": {"fp32": 1e-4},
        "variants": {},
    }


def test_nothing_of_the_file_is_run(tmp_path: Path) -> None:
    read_network(write_model(tmp_path, f"raise SystemExit(open('{tmp_path}/ran', 'w'))\n{TORCH}"))
    assert not (tmp_path / "ran").exists()


def test_a_file_without_cases_has_one_without_sizes(tmp_path: Path) -> None:
    network = read_network(write_model(tmp_path, "def KerasModel(): return build()"))
    assert network.cases == {"default": {}}
    assert network.tolerance is None
    assert network.phases == ("compile", "compile-warm", "forward", "train")


def test_a_tolerance_for_every_precision_has_a_star(tmp_path: Path) -> None:
    assert read_network(write_model(tmp_path, f"TOLERANCE = 1e-3\n{TORCH}")).tolerance == {"*": 1e-3}


def test_the_digest_changes_with_each_name_and_byte() -> None:
    digests = {
        ModelFiles.of("a.py", contents).digest
        for contents in ({"a.py": b"1"}, {"a.py": b"2"}, {"b.py": b"1"}, {"a.py": b"1", "b.py": b""}, {"a.py1": b""})
    }
    assert len(digests) == 5


def test_a_folder_means_its_model_py(tmp_path: Path) -> None:
    folder = tmp_path / "My_Encoder"
    write_model(folder, name="model.py")
    assert read_network(folder).files.entry == "model.py"
    assert network_name(folder) == "my-encoder"
    assert network_name(tmp_path / "some net.v2.py") == "some-net.v2"
    with pytest.raises(UsageError, match="'2nd_net' cannot name a workload"):
        network_name(tmp_path / "2nd_net.py")


IMPORTS = {
    "import blocks.conv": ["blocks/__init__.py", "blocks/base.py", "blocks/conv.py"],
    "from blocks import conv": ["blocks/__init__.py", "blocks/base.py", "blocks/conv.py"],
    "from blocks import *": ["blocks/__init__.py"],
    "def f():\n    import spaces.deep": ["spaces/deep.py"],
    "import random, torch, os.path": [],
    "import my_network": [],
}


@pytest.mark.parametrize("statement", IMPORTS)
def test_modules_beside_the_file_travel_with_it(tmp_path: Path, statement: str) -> None:
    for name, text in {
        "blocks/__init__.py": "",
        "blocks/conv.py": "from .base import Base\nfrom . import missing",
        "blocks/base.py": "from . import conv",
        "spaces/deep.py": "",
        "random.py": "hides Python's",
        "torch/__init__.py": "hides the framework",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    network = read_network(write_model(tmp_path, f"{statement}\n{TORCH}"))
    assert sorted({*network.files.files} - {"my_network.py"}) == IMPORTS[statement]


METHODS = {
    "class TorchModel:\n    def train(self): ...": ("train",),
    "class Base:\n    def forward(self): ...\nclass TorchModel(Base):\n    def train(self): ...": ("forward", "train"),
    "from torch import nn\nclass TorchModel(nn.Module):\n    def forward(self): ...": ("forward",),
    "from elsewhere import Base\nclass TorchModel(Base): ...": ("forward", "train"),
    "class TorchModel:\n    def __init__(self):\n        self.train = jit(self.step)": ("train",),
    "try:\n    from layers import Net as TorchModel\nexcept ImportError:\n    TorchModel = None": ("forward", "train"),
    "from layers import Net\nclass TorchModel(Net):\n    def train(self): ...": ("forward", "train"),
    "class A: ...\nclass B(A): ...\nclass TorchModel(B, A):\n    def train(self): ...": ("train",),
    "Net = Other\nOther = Net\nTorchModel = Net": ("forward", "train"),
    "class Net:\n    def train(self): ...\nTorchModel = Net": ("train",),
    "def TorchModel():\n    class Net:\n        def train(self): ...\n    return Net()": ("forward", "train"),
    "TorchModel = make()": ("forward", "train"),
    "class TorchModel(TorchModel): ...": ("forward", "train"),
}


@pytest.mark.parametrize("source", METHODS)
def test_the_methods_of_a_class_are_the_phases_that_it_has(tmp_path: Path, source: str) -> None:
    path = write_model(tmp_path, f"import layers\n{source}")
    (tmp_path / "layers.py").write_text("class Net:\n    def forward(self): ...\n")
    assert read_network(path).methods == {"torch": METHODS[source]}


def test_all_mistakes_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    source = SOURCE.replace("width=", "").replace('"width": 8', '"widht": 8').replace("1e-4", "-1")
    assert (
        message_of(tmp_path, source.replace("data/*", "date/*"))
        == """\
my_network.py:4:20: error: TorchModel has no parameter 'widht', which the case 'small' gives
    4 | CASES = {"small": {"widht": 8}, "large": {"width": 16, "kernel": [3, 3]}}
      |                    ^^^^^^^
hint: add the parameter 'widht' to TorchModel, or **sizes

my_network.py:5:22: error: TOLERANCE must be a relative error from 0 to below 1, or one for each precision
    5 | TOLERANCE = {"fp32": -1}
      |                      ^^
hint: TOLERANCE = 1e-5

my_network.py:6:10: error: no file matches 'date/*.txt'
    6 | FILES = ["date/*.txt"]
      |          ^^^^^^^^^^^^
hint: name files below the folder of the model file, such as 'vocabulary.json' or 'data/*.npy'

my_network.py:13:7: error: TorchModel needs the parameter 'width', and the case 'small' does not give it
   13 | class TorchModel:
      |       ^^^^^^^^^^
hint: add 'width' to the case in CASES, or give the parameter a default

my_network.py:24:5: error: NumpyModel needs the parameter 'width', and the case 'small' does not give it
   24 | def NumpyModel(random, width, **sizes):
      |     ^^^^^^^^^^
hint: add 'width' to the case in CASES, or give the parameter a default"""
    )


MISTAKES = {
    "class TorchModel\n    pass": "1:17: error: this is not Python: expected ':'",
    "x = 1\0": "1:1: error: this is not Python: source code string cannot contain null bytes",
    "# coding: none\n": "1:1: error: my_network.py is not text that Python reads: unknown encoding: none",
    "x = 1": "1:1: error: my_network.py has no class of a framework",
    "TorchModel = None": "1:1: error: my_network.py has no class of a framework",
    "class TorchModel: ...": "1:7: error: TorchModel has neither forward() nor train()",
    "class TorchModel:\n    def froward(self): ...": "hint: rename froward() to forward()",
    f"{TORCH}CASES = dict(a=1)": "4:9: error: CASES must be a dictionary in braces",
    f"{TORCH}CASES = {{}}": "4:9: error: CASES is empty",
    f"{TORCH}CASES = {{1: {{}}}}": "4:10: error: a key of CASES must be text in quotes",
    f"{TORCH}CASES = {{'a b': {{}}}}": "4:10: error: 'a b' cannot name a case",
    f"{TORCH}CASES = {{'a': {{}}, 'a': {{}}}}": "4:19: error: CASES has 'a' twice",
    f"{TORCH}CASES = {{**others}}": "4:12: error: CASES takes in another dictionary",
    f"{TORCH}CASES = {{'a': 64}}": "4:15: error: the case 'a' must be a dictionary in braces",
    f"{TORCH}CASES = {{'a': {{'n': [1, 2 * 3]}}}}": "4:25: error: this is not a plain value",
    f"{TORCH}CASES = {{'a': {{'n': 1e999}}}}": "4:21: error: the size 'n' cannot be this",
    f"{TORCH}CASES = {{'a': {{'n': b'x'}}}}": "4:21: error: the size 'n' cannot be this",
    f"{TORCH}CASES = {{'a': {{'n': None}}}}": "4:21: error: the size 'n' cannot be None",
    f"{TORCH}CASES = {{'a': {{'device': 1}}}}": "4:16: error: 'device' is given by the program, so no case can have it",
    f"{TORCH}CASES = {{'a': {{'for': 1}}}}": "4:16: error: 'for' cannot name a parameter",
    f"{TORCH}TOLERANCE = {{'fp23': 0.1}}": "hint: did you mean 'fp32'?",
    f"{TORCH}TOLERANCE = 'small'": "4:13: error: TOLERANCE must be a relative error from 0 to below 1",
    f"{TORCH}FILES = 'a.txt'": "4:9: error: FILES must be a list of patterns",
    f"{TORCH}FILES = [1]": "4:10: error: a pattern of FILES must be text",
    f"{TORCH}FILES = ['../a']": "4:10: error: '../a' leads outside of the folder of the model file",
    f"{TORCH}FILES = ['/etc/passwd']": "4:10: error: '/etc/passwd' leads outside",
    f"{TORCH}FILES = ['data']": "hint: 'data/*' names the files of a folder",
    f"{TORCH}FILES = ['link.txt']": "4:10: error: link.txt leads outside of the folder of the model file",
    f"from .layers import x\n{TORCH}": "1:1: error: this relative import leads out of the folder",
    f"import broken\n{TORCH}": "broken.py:2:5: error: this is not Python",
    "class TorchModel:\n    def __init__(self, weights): ...\n    def train(self): ...": "has no function weights",
    f"é = 'é'; CASES = 1\n{TORCH}": "1:18: error: CASES must be a dictionary",
    f"if x:\n    CASES = 1\n{TORCH}": "2:13: error: CASES must be a dictionary",
    "class TorchModel:\n    def forward(self, x): ...": "2:9: error: TorchModel.forward() needs the parameter 'x'",
    "class Base:\n    def train(self, *, x): ...\nclass TorchModel(Base): ...": "train() needs the parameter",
    "class TorchModel:\n    @torch.no_grad()\n    def forward(self, x): ...": "hint: write `def forward(self)`,",
    f"{TORCH}    def state(self, x): ...": "hint: rename it: a method of this name is called as",
    f"{TORCH}    def train(self): ...\n    def loss(self, x): ...": "TorchModel.loss() needs the parameter 'x'",
    f"{TORCH}    def load_state(self): ...": "4:9: error: TorchModel.load_state() takes no arrays",
    "class TorchModel:\n    def forward(): ...": "2:9: error: TorchModel.forward() takes no self, and",
    "from torch import nn\nclass Net(nn.Module): ...": "2:7: error: my_network.py has no class of a framework",
    f"import numpy as np\nclass Data: ...\nclass Net:{TORCH.removeprefix('class TorchModel:')}": (
        "3:7: error: my_network.py has no class of a framework"
    ),
    "import numpy as np\nclass Net:\n    def forward(self, x): ...": "hint: rename Net to NumpyModel, the name by",
    "import jax\nclass Net: ...": "hint: rename Net to JaxModel, the name by",
    "\nclass Net: ...": "2:7: error: my_network.py has no class of a framework",
    "class Net:\n    def forward(self): ...": "hint: rename Net to the one of its framework: TorchModel, ",
    "import numpy, flax.linen as nn\nclass Net(nn.Module): ...": "hint: add `class JaxModel:`, whose `def",
    "import numpy as np\nimport torch\nx = torch.ones(3)": "hint: put the program into `class TorchModel:`: what",
}


CALLABLE = {
    "a default": "class TorchModel:\n    def forward(self, x=1, *, y=2, **more): ...",
    "any arguments": "class TorchModel:\n    def forward(*args): ...",
    "a decorator that gives arguments": "class TorchModel:\n    @given(x=1)\n    def forward(self, x): ...",
    "a value of the object": "class TorchModel:\n    def __init__(self):\n        self.forward = bind(self.forward)\n"
    "    def forward(self, x): ...",
    "a value of the class": "class TorchModel:\n    def forward(self, x): ...\n    forward = bind(forward)",
    "a helper that is not called": f"{TORCH}    def loss(self, x, y): ...",
    "a state with a default": f"{TORCH}    def load_state(self, arrays, strict=True): ...",
    "one that is not known": "import layers\nclass TorchModel(layers.Net):\n    def train(self): ...",
}


@pytest.mark.parametrize("name", CALLABLE)
def test_a_method_that_may_be_called_without_arguments_is_no_mistake(tmp_path: Path, name: str) -> None:
    assert read_network(write_model(tmp_path, CALLABLE[name])).methods["torch"]


@pytest.mark.parametrize("source", MISTAKES)
def test_a_mistake_has_a_place_a_sentence_and_a_hint(tmp_path: Path, source: str) -> None:
    (tmp_path / "broken.py").write_text("\nx = = 1\n")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    message = message_of(tmp_path, source)
    assert MISTAKES[source] in message
    assert "\nhint: " in message


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MatrixError, match=r"there is no .*/no\.py"):
        read_network(tmp_path / "no.py")
    with pytest.raises(MatrixError, match=r"there is no .*/model\.py"):
        read_network(tmp_path)
    monkeypatch.setattr(files, "MAX_BYTES", 500)
    assert "the files of the network have" in message_of(tmp_path, SOURCE)
    monkeypatch.setattr(files, "MAX_SOURCE_BYTES", 100)
    assert "my_network.py cannot be read: it is larger than 100 bytes" in message_of(tmp_path, SOURCE)


def test_files_are_counted_before_they_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("a;" * 300_000)
    (tmp_path / "b.py").write_text("raise SystemExit(" * 3)  # no Python: it would be another message
    monkeypatch.setattr(files, "MAX_MARKS", 300_010)
    assert "more than 300,010 words and signs" in message_of(tmp_path, f"import a, b\n{TORCH}")
    for many in ("a;" * 300_020, f"x = {'a and ' * 150_020}a"):
        assert "more than 300,010 words" in message_of(tmp_path, many)
    for number in range(20):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    modules = ", ".join(f"m{number}" for number in range(20))
    monkeypatch.setattr(files, "MAX_FILES", 10)
    message = message_of(tmp_path, f"import {modules}\n{TORCH}")
    assert message.count("imports more than 10 files of its folder") == 1
    monkeypatch.setattr(files, "MAX_FILES", 1000)
    monkeypatch.setattr(files, "MAX_BYTES", 250)
    assert "the files of the network have" in message_of(tmp_path, f"import {modules}\n{TORCH}")


@pytest.mark.parametrize("encoding", ["punycode", "undefined", "idna", "unicode_escape", "hex", "no-such"])
def test_an_encoding_that_fails_is_a_sentence(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(f"# coding: {encoding}\nx = '\\ud800'\n# \xff-{'x' * 90}".encode("latin-1"))
    with pytest.raises(MatrixError, match=r"model\.py"):
        read_network(path)


def test_a_size_has_no_surrogate(tmp_path: Path) -> None:
    assert "the size 'name' cannot be this" in message_of(tmp_path, f'CASES = {{"a": {{"name": "x\\ud800"}}}}\n{TORCH}')


def test_a_file_that_is_nested_too_deep_is_a_sentence(tmp_path: Path) -> None:
    deep = "if a:\n    pass\n" + "elif a:\n    pass\n" * 3000
    assert "nested too deep" in message_of(tmp_path, deep + TORCH)
