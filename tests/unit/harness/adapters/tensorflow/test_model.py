"""A user's network in TensorFlow 2, with stand-ins: the state of Keras's layers, and waits for the device."""

import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runner.harness.adapters.tensorflow.model import UserModel, is_layer, layer_stores
from runner.harness.model import builder, held, state


def no_tensor(_value: Any) -> None:
    """Know no framework."""


class Layer:
    """A layer of Keras, whose weights are read and written at once."""

    trainable_weights = ()

    def __init__(self, count: int) -> None:
        """Build it."""
        self.weights = [np.full(2, float(number)) for number in range(count)]
        self.calls: list[str] = []

    def get_weights(self) -> list[Any]:
        """Return all weights."""
        self.calls.append("get")
        return list(self.weights)

    def set_weights(self, weights: list[Any]) -> None:
        """Take all weights."""
        assert len(weights) == len(self.weights)
        self.calls.append("set")
        self.weights = weights


Layer.__module__ = "keras.layers"


class Compiled(Layer):
    """A model of Keras 3.7, whose ``train_on_batch`` returns the mean over all calls."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__(1)
        self.losses: list[float] = []
        self.next_loss = 4.0

    def reset_metrics(self) -> None:
        """Forget the calls."""
        self.losses = []

    def train_on_batch(self) -> float:
        """Make a step."""
        self.losses.append(self.next_loss)
        self.next_loss /= 2
        return sum(self.losses) / len(self.losses)


class Raises(Layer):
    """A model of Keras 2 that is not built."""

    @property
    def trainable_weights(self) -> None:  # type: ignore[override]
        """Raise what Keras raises."""
        raise ValueError("Weights for model have not yet been created")


def test_all_weights_are_read_once_and_written_once() -> None:
    layer = Layer(242)
    (store,) = layer_stores([("model", layer)])
    values = state.read([store], no_tensor)
    assert (len(values), values[0][0], layer.calls) == (242, "model.0", ["get"])
    state.load([store], [(name, array + 1) for name, array in values], no_tensor)
    assert layer.calls == ["get", "set"]
    assert layer.weights[7].tolist() == [8.0, 8.0]


@pytest.mark.parametrize(("is_v1", "losses"), [(False, [4.0, 2.0, 1.0]), (True, [4.0, 3.0, 7 / 3])])
def test_a_loss_is_that_of_its_step_where_keras_returns_means(is_v1: bool, losses: list[float]) -> None:  # noqa: FBT001
    model = Compiled()
    user: Any = SimpleNamespace(attributes=lambda: [("", object()), ("model", model)], is_v1=is_v1)
    reset: Any = partial(UserModel.reset_metrics, user)
    program: Any = SimpleNamespace(case={"seed": 0}, seed=int, reset_metrics=reset, read_loss=float)
    program.train = model.train_on_batch
    assert builder.losses(program) == pytest.approx(losses)


def test_weights_that_the_base_lacks_stay() -> None:
    layer = Layer(2)
    loaded = state.load(layer_stores([("model", layer)]), [("model.0", np.zeros(2) + 9)], no_tensor)
    assert [array[0] for array in layer.weights] == [9.0, 1.0]
    assert loaded.only_here == ["model.1"]


def test_a_layer_is_found_once_wherever_it_is_kept() -> None:
    layer = Layer(1)

    def step() -> Any:
        return layer

    values: Any = held.walk(SimpleNamespace(trainer=SimpleNamespace(step=step), model=layer))
    assert [store.names for store in layer_stores(list(values))] == [["model.0"]]


def test_a_model_that_is_not_built_is_a_layer() -> None:
    assert is_layer(Raises(1))
    assert not is_layer(Layer)
    assert not is_layer(3)


@pytest.mark.parametrize(("device", "waits"), [("cpu", 0), ("cuda", 1)])
def test_only_a_gpu_is_waited_for(device: str, waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for all devices takes 10 to 25 us, which would be a part of each sample on a CPU."""
    waited: list[str] = []
    experimental = SimpleNamespace(set_memory_growth=lambda _gpu, _grows: None)
    config = SimpleNamespace(experimental=experimental, list_physical_devices=lambda _kind: ["a GPU"])
    wait = SimpleNamespace(sync_devices=lambda: waited.append("device"))
    fake = SimpleNamespace(
        __version__="2.21.0",
        config=config,
        device=lambda _name: nullcontext(),
        random=SimpleNamespace(set_seed=lambda _seed: None),
        test=SimpleNamespace(experimental=wait),
        Variable=lambda value, trainable: (value, trainable),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    module = SimpleNamespace(TensorFlowModel=lambda: SimpleNamespace(forward=lambda: 1.0))
    case = {
        "seed": 0,
        "sizes": {},
        "classes": {"tensorflow": "TensorFlowModel"},
        "takes_precision": [],
        "takes_weights": [],
        "entry": "n.py",
    }
    kind: Any = UserModel
    program = kind(case, module, None, device, "fp32")
    program.synchronize()
    assert (program.device, len(waited)) == (device, waits)
