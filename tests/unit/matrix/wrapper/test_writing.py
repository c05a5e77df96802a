"""The wrappers that are written: their text, that Python of old environments reads it, and what it computes."""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from runner.matrix.wrapper import parse_model, read_model, wrapper_of
from runner.matrix.wrapper.subject import Kind

NETS = """\
import {framework}


class UNet({base}):
    def forward(self, x): ...
    def training_step(self, batch, index): ...


def network(): ...
def function(x): ...
"""
TORCH = '''\
"""UNet of nets, made into a model file by `runner wrap`.

docs/how-to/measure-your-network.md says what else such a file may have.
"""

import warnings

import torch
from nets import UNet

CASES = {"1x3x64x64_8-int64": {"shapes": [[1, 3, 64, 64], [8]]}}
SIXTEEN_BITS = {"fp16": "float16", "bf16": "bfloat16"}


class TorchModel:
    def __init__(self, random, device, precision, shapes):
        self.device, self.sixteen_bits = device, None
        self.type = torch.float64 if precision == "fp64" else torch.float32
        if precision in SIXTEEN_BITS:
            self.sixteen_bits = getattr(torch, SIXTEEN_BITS[precision])
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a release without this autocast only warns, and computes in float32
                torch.autocast(device, dtype=self.sixteen_bits)
        self.network = UNet(3, bilinear=True).to(device, self.type)
        self.inputs = [
            torch.from_numpy(random.standard_normal(shapes[0])).to(device, self.type),
            torch.from_numpy(random.randint(1000, size=shapes[1])).to(device, torch.int64),
        ]
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01)

    def forward(self):
        if self.network.training:
            self.network.eval()
        with torch.no_grad():
            return self.compute(self.network, *self.inputs)

    def train(self):
        if not self.network.training:
            self.network.train()
        outputs = self.compute(self.network, *self.inputs)
        return self.update(loss_of(outputs, self.type))

    def compute(self, function, *arguments):
        if self.sixteen_bits is None:
            return function(*arguments)
        with torch.autocast(self.device, dtype=self.sixteen_bits):
            return function(*arguments)

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def loss_of(outputs, kind):
    """Return the loss that the outputs have, else the mean square of the first of them that are floats."""
    if getattr(outputs, "loss", None) is not None:
        return outputs.loss
    floats = first_floats(outputs)
    if floats is None:
        raise ValueError("the outputs have neither floats nor a loss: change train()")
    return floats.to(kind).pow(2).mean()


def first_floats(value):
    if torch.is_tensor(value):
        return value if value.dtype.is_floating_point else None
    if hasattr(value, "values"):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        value = getattr(value, "__dict__", {}).values()
    return next((floats for floats in map(first_floats, value) if floats is not None), None)
'''


def text_of(folder: Path, named: str, framework: str, inputs: Sequence[str] = ("8x4",), base: str = "") -> str:
    """Return the wrapper of a name of a file, which is read without a mistake."""
    (folder / "nets.py").write_text(NETS.format(framework=framework, base=base), "utf-8")
    model = parse_model(f"{folder}/nets.py:{named}")
    assert set(read_model(model, inputs).files.files) == {"nets.py", wrapper_of(model, inputs).name}
    return wrapper_of(model, inputs).text


def test_the_wrapper_of_a_module_is_what_somebody_would_write(tmp_path: Path) -> None:
    source = "from torch import nn\nclass UNet(nn.Module):\n    def forward(self, x, n): ...\n"
    (tmp_path / "nets.py").write_text(source, "utf-8")
    wrapper = wrapper_of(parse_model(f"{tmp_path}/nets.py:UNet(3, bilinear=True)"), ["1x3x64x64", "8:int64<1000"])
    assert (wrapper.name, wrapper.root) == ("unet_wrapper.py", tmp_path)
    assert wrapper.text == TORCH


WRITTEN: dict[Kind, tuple[str, str, str, tuple[str, ...]]] = {
    "torch_module": ("UNet", "torch", "torch.nn.Module", ("forward", "train")),
    "lightning_module": ("UNet", "lightning", "lightning.LightningModule", ("forward", "train")),
    "torch_function": ("function", "torch", "", ("forward",)),
    "keras_model": ("network", "keras", "", ("forward", "train")),
    "tensorflow_function": ("function", "tensorflow", "", ("forward",)),
    "jax_function": ("function", "jax", "", ("forward",)),
    "numpy_function": ("function", "numpy", "", ("forward",)),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_wrapper_is_a_model_file_that_old_pythons_read(tmp_path: Path, kind: Kind) -> None:
    named, framework, base, methods = WRITTEN[kind]
    text = text_of(tmp_path, named, framework, ("8x4", "8:int64<10") if kind == "lightning_module" else ("8x4",), base)
    ast.parse(text, feature_version=(3, 6))
    assert not [line for line in text.splitlines() if len(line) > 120 or line != line.rstrip()]
    assert "\n\n\n\n" not in text
    network = read_model(parse_model(f"{tmp_path}/nets.py:{named}"), ["8x4"])
    assert set(network.methods.values()) == {methods}
    assert set(network.takes_precision) == set(network.classes)
    assert (network.is_wrapped, network.path) == (True, Path(f"{tmp_path}/nets.py:{named}"))


def test_every_template_is_of_a_kind_or_included() -> None:
    assert set(WRITTEN) == set(get_args(Kind))


def test_a_keras_model_is_measured_in_tensorflow_and_in_keras(tmp_path: Path) -> None:
    text_of(tmp_path, "network", "keras")
    network = read_model(parse_model(f"{tmp_path}/nets.py:network"), ["8x4"])
    assert network.classes == {"tensorflow": "TensorFlowModel", "keras": "KerasModel"}


def test_what_is_typed_cannot_leave_the_text_of_the_title(tmp_path: Path) -> None:
    for text in ('keras:applications.VGG16(name=\'"""\')', "keras:applications.VGG16(name='\\\\\\n')"):
        network = read_model(parse_model(text), ["1x8x8x3"])
        assert network.classes["keras"] == "KerasModel"


def run_with(monkeypatch: pytest.MonkeyPatch, text: str, **modules: object) -> dict[str, Any]:
    """Return the names of a wrapper that was run with stand-ins for what it imports."""
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members if isinstance(members, dict) else vars(members))
        monkeypatch.setitem(sys.modules, name, module)
    names: dict[str, Any] = {}
    exec(text, names)
    return names


TYPES = (("fp32", "float32"), ("fp64", "float64"), ("fp16", "float16"))


@pytest.mark.parametrize(("precision", "kind"), TYPES)
def test_a_function_of_numpy_gets_arrays_in_the_type_of_the_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, kind: str
) -> None:
    text = text_of(tmp_path, "function", "numpy")
    names = run_with(monkeypatch, text, nets={"function": lambda x: x * 2})
    model = names["NumpyModel"](random=np.random.RandomState(0), precision=precision, shapes=[[8, 4]])
    assert (model.forward().dtype, model.forward().shape) == (np.dtype(kind), (8, 4))
    with pytest.raises(ValueError, match="NumPy does not compute in bf16"):
        names["NumpyModel"](random=np.random.RandomState(0), precision="bf16", shapes=[[8, 4]])


def test_a_function_without_arrays_draws_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets.py").write_text("import numpy\ndef count(): ...\n")
    text = wrapper_of(parse_model(f"{tmp_path}/nets.py:count"), []).text
    assert "CASES" not in text
    names = run_with(monkeypatch, text, nets={"count": lambda: 7})
    assert names["NumpyModel"](precision="fp32").forward() == 7


class Tensor:
    """A stand-in for a tensor: numbers that know what they were moved to."""

    def __init__(self, array: np.ndarray[Any, Any], to: tuple[object, ...] = ()) -> None:
        """Keep the numbers."""
        self.array, self.moved = array, to
        self.dtype = SimpleNamespace(is_floating_point=array.dtype.kind == "f")

    def to(self, *where: object) -> "Tensor":
        """Move it."""
        return Tensor(self.array, where)

    def pow(self, exponent: int) -> "Tensor":
        """Raise each number to a power."""
        return Tensor(self.array**exponent)

    def mean(self) -> "Tensor":
        """Return the mean as a tensor."""
        return Tensor(np.asarray(self.array.mean()))

    def backward(self) -> None:
        """Make no gradients."""


class Optimizer:
    """A stand-in for an optimizer, which counts its steps."""

    steps = 0

    def __init__(self, *_: object, **options: float) -> None:
        """Take parameters and options."""
        self.options = options

    def zero_grad(self) -> None:
        """Clear nothing."""

    def step(self) -> None:
        """Count."""
        self.steps += 1


class Module:
    """A stand-in for an ``nn.Module``, in training mode as PyTorch builds it; it returns what it is called with."""

    def __init__(self) -> None:
        """Note nothing yet."""
        self.training, self.modes, self.moved = True, list[bool](), ()

    def to(self, *where: object) -> "Module":
        """Move it."""
        self.moved = where  # type: ignore[assignment]
        return self

    def train(self, mode: bool = True) -> None:  # noqa: FBT001, FBT002  as in PyTorch
        """Choose the mode."""
        self.training = mode
        self.modes.append(mode)

    def eval(self) -> None:
        """Choose the mode for inference."""
        self.train(mode=False)

    def parameters(self) -> list[object]:
        """Return nothing to train."""
        return []

    def __call__(self, *inputs: object) -> tuple[object, ...]:
        """Return the inputs."""
        return inputs


class Context:
    """A stand-in for ``torch.no_grad`` and ``torch.autocast``, which notes what it was opened with."""

    opened: list[tuple[object, ...]] = []  # noqa: RUF012  of all of them

    def __init__(self, *how: object, dtype: object = None) -> None:
        """Take a device and a type."""
        self.how = (*how, dtype) if dtype else how

    def __enter__(self) -> None:
        """Note it."""
        self.opened.append(self.how)

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def stand_in() -> dict[str, object]:
    """Return the names of a module that stands in for PyTorch."""
    Context.opened.clear()
    return {
        "float64": "double",
        "float32": "single",
        "bfloat16": "brain",
        "int64": "long",
        "from_numpy": Tensor,
        "is_tensor": lambda value: isinstance(value, Tensor),
        "no_grad": Context,
        "autocast": Context,
        "optim": SimpleNamespace(SGD=Optimizer),
    }


def torch_model(names: dict[str, Any], precision: str = "fp32", shapes: Sequence[Sequence[int]] = ((4, 2),)) -> Any:
    """Build a wrapper's object."""
    return names["TorchModel"](
        random=np.random.RandomState(0), device="cpu", precision=precision, shapes=list(map(list, shapes))
    )


def test_a_module_is_evaluated_and_trained_in_its_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(tmp_path, "UNet", "torch", base="torch.nn.Module")
    names = run_with(monkeypatch, text, torch=stand_in(), nets={"UNet": Module})
    model = torch_model(names, shapes=[[8, 4]])
    assert (model.network.moved, model.optimizer.options) == (("cpu", "single"), {"lr": 0.01})
    loss = model.train()
    assert loss.array == pytest.approx((model.inputs[0].array ** 2).mean())
    assert (model.optimizer.steps, model.network.modes) == (1, [])
    model.forward()
    model.forward()
    assert (model.network.modes, Context.opened) == ([False], [(), ()])  # eval() once, and no gradients
    model.train()
    assert model.network.modes == [False, True]


def test_a_module_computes_in_16_bits_by_autocast_and_in_float64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(tmp_path, "UNet", "torch", base="torch.nn.Module")
    names = run_with(monkeypatch, text, torch=stand_in(), nets={"UNet": Module})
    torch_model(names, "bf16", [[8, 4]]).forward()
    assert Context.opened == [(), ("cpu", "brain")]
    model = torch_model(names, "fp64", [[8, 4]])
    assert (model.network.moved, model.inputs[0].moved) == (("cpu", "double"), ("cpu", "double"))


def test_a_release_that_would_only_warn_of_autocast_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    def autocast(*_: object, **__: object) -> None:
        warnings.warn("disabling autocast", UserWarning, stacklevel=1)

    text = text_of(tmp_path, "UNet", "torch", base="torch.nn.Module")
    names = run_with(monkeypatch, text, torch={**stand_in(), "autocast": autocast}, nets={"UNet": Module})
    with pytest.raises(UserWarning, match="disabling autocast"):
        torch_model(names, "bf16", [[8, 4]])


FLOATS, INTEGERS = Tensor(np.array([3.0, 1.0])), Tensor(np.array([2, 2]))
LOSSES: dict[str, tuple[object, float]] = {
    "a tensor": (FLOATS, 5.0),
    "integers first": ((INTEGERS, (FLOATS, Tensor(np.array([9.0])))), 5.0),
    "a dict": ({"indices": INTEGERS, "hidden": [FLOATS]}, 5.0),
    "an object": (SimpleNamespace(logits=FLOATS), 5.0),
    "a loss": (SimpleNamespace(loss=Tensor(np.asarray(0.5)), logits=FLOATS), 0.5),
    "no loss": (SimpleNamespace(loss=None, logits=FLOATS), 5.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_that_of_the_outputs_or_the_mean_square_of_the_first_floats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    outputs, expected = LOSSES[name]
    text = text_of(tmp_path, "UNet", "torch", base="torch.nn.Module")
    names = run_with(monkeypatch, text, torch=stand_in(), nets={"UNet": Module})
    assert float(names["loss_of"](outputs, "single").array) == expected
    with pytest.raises(ValueError, match="neither floats nor a loss"):
        names["loss_of"]((INTEGERS, "text"), "single")


class Lightning(Module):
    """A stand-in for a LightningModule; its step logs, as most do."""

    configured: object = None

    def configure_optimizers(self) -> object:
        """Return what a test chose."""
        return self.configured

    def log(self, *_: object, **__: object) -> None:
        """Fail as without a Trainer."""
        raise AssertionError

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> dict[str, Tensor]:
        """Return the loss in a dictionary."""
        images, labels = batch
        self.log("loss", 1.0, prog_bar=True)
        return {"loss": Tensor(images.array.mean() + labels.array.max() * 0 + index)}


OPTIMIZER = Optimizer()
CONFIGURED = [
    OPTIMIZER,
    [OPTIMIZER],
    ([OPTIMIZER], ["scheduler"]),
    {"optimizer": OPTIMIZER, "lr_scheduler": "scheduler"},
    [{"optimizer": OPTIMIZER}],
]


@pytest.mark.parametrize("configured", CONFIGURED)
def test_a_lightning_module_is_trained_by_its_own_step_and_optimizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: object
) -> None:
    text = text_of(tmp_path, "UNet", "lightning", ("4x2", "4:int64<3"), "lightning.LightningModule")
    network = type("UNet", (Lightning,), {"configured": configured})
    names = run_with(monkeypatch, text, torch=stand_in(), nets={"UNet": network})
    model = torch_model(names, shapes=[[4, 2], [4]])
    before = OPTIMIZER.steps
    assert model.train().array == pytest.approx(model.inputs[0].array.mean())
    assert (OPTIMIZER.steps, model.optimizer) == (before + 1, OPTIMIZER)
    assert model.forward() == (model.inputs[0],)  # the labels of the batch are none of its inputs
    assert set(model.inputs[1].array) <= {0, 1, 2}


def test_several_optimizers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(tmp_path, "UNet", "lightning", ("4x2", "4:int64<3"), "lightning.LightningModule")
    network = type("UNet", (Lightning,), {"configured": (OPTIMIZER, OPTIMIZER)})
    names = run_with(monkeypatch, text, torch=stand_in(), nets={"UNet": network})
    with pytest.raises(ValueError, match="there are 2 optimizers"):
        torch_model(names, shapes=[[4, 2], [4]])
