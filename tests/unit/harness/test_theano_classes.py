"""What is known of the Theano implementations beforehand, on a machine without Theano."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from runner.harness import adapters
from runner.harness.adapters import theano
from runner.harness.adapters.theano import cudnn, lasagne
from runner.harness.cases import materialise
from tests.support.networks import NETWORKS

CLASSES: dict[str, Any] = {found.slug: found for found in theano.IMPLEMENTATIONS}
LAST_OF_LASAGNE, FIRST_OF_GPUARRAY, NEWEST = (0, 8, 2), (0, 9), (1, 0, 5)
STEP = NETWORKS["rnn-step/lstm-b32-h128"]
WITHOUT_CTC = {name: case for name, case in NETWORKS.items() if case["loss"] != "ctc"}


def lacks(
    slug: str, case: str = "rnn-step/lstm-b32-h128", release: tuple[int, ...] = LAST_OF_LASAGNE, device: str = "cpu"
) -> Any:
    return CLASSES[slug].lacks(NETWORKS[case], release, device, "fp32")


def test_reading_the_classes_needs_no_theano() -> None:
    assert adapters.implementations("theano") == theano.IMPLEMENTATIONS
    assert not {"theano", "lasagne"} & set(sys.modules)


def test_slugs_and_kinds() -> None:
    assert [(found.slug, found.kind) for found in theano.IMPLEMENTATIONS] == [
        ("theano-scan", "flexible"),
        ("lasagne-lstm-layer", "flexible"),
        ("theano-cudnn", "vendor"),
    ]


@pytest.mark.parametrize("release", [LAST_OF_LASAGNE, FIRST_OF_GPUARRAY, NEWEST])
@pytest.mark.parametrize("name", WITHOUT_CTC)
def test_scan_computes_everything_but_ctc(name: str, release: tuple[int, ...]) -> None:
    assert lacks("theano-scan", name, release) is None


@pytest.mark.parametrize("slug", CLASSES)
def test_ctc_needs_a_library_that_no_index_has(slug: str) -> None:
    code, reason = lacks(slug, "asr-lstm/2x64-ctc-small", device="cuda")
    assert code == "framework-lacks"
    assert "libwarpctc" in reason


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("rnn-step/gru-b32-h128", "computes lstm only"),
        ("rnn-step/rnn-b32-h128", "computes lstm only"),
        ("lm-lstm/lm-small", "cell states"),
    ],
)
def test_what_lasagne_cannot_compute(case: str, sentence: str) -> None:
    code, reason = lacks("lasagne-lstm-layer", case)
    assert code == "framework-lacks"
    assert sentence in reason


def test_lasagne_went_with_theano_0_9() -> None:
    assert lacks("lasagne-lstm-layer") is None
    code, reason = lacks("lasagne-lstm-layer", release=FIRST_OF_GPUARRAY)
    assert code == "framework-lacks"
    assert "cannot be imported with Theano 0.9" in reason


def test_cudnn_needs_a_gpu_and_the_second_back_end() -> None:
    assert lacks("theano-cudnn", release=NEWEST) == ("needs-gpu", "theano-cudnn has no CPU kernel")
    assert lacks("theano-cudnn", release=NEWEST, device="cuda") is None
    assert lacks("theano-cudnn", "rnn-step/gru-l3-b32-h128", NEWEST, "cuda") is None
    assert lacks("theano-cudnn", "rnn-step/rnn-b32-h128", NEWEST, "cuda")[0] == "framework-lacks"
    for slug in ("theano-scan", "theano-cudnn"):
        assert lacks(slug, device="cuda")[0] == "framework-lacks"


def test_one_buffer_has_no_norm_of_each_tensor() -> None:
    code, reason = lacks("theano-cudnn", "lm-lstm/template-2x64", NEWEST, "cuda")
    assert code == "framework-lacks"
    assert "no tensor has its own norm" in reason


def test_nothing_rounds_its_products() -> None:
    assert CLASSES["theano-scan"].lacks(STEP, NEWEST, "cuda", "tf32")[0] == "precision-lacks"


def test_flags_are_added_to_those_that_are_there() -> None:
    found = theano.flags("base_compiledir=/cache,openmp=False", 4, "-lblas")
    assert found == "base_compiledir=/cache,openmp=False,floatX=float32,device=cpu,blas.ldflags=-lblas"


def test_without_a_cache_theano_stays_out_of_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/own")
    assert theano.flags("", 1, "") == "base_compiledir=/own/theano,floatX=float32,device=cpu,openmp=False"


def wheel(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    monkeypatch.setattr("glob.glob", lambda _: list(found))


def test_the_blas_of_numpys_wheel_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(monkeypatch, "/site/numpy/.libs/libopenblasp-r0-34a18dc3.3.7.so")
    assert theano.blas() == "-L/site/numpy/.libs -lopenblasp-r0-34a18dc3.3.7"
    assert theano.linked(theano.blas()) == "openblasp-r0-34a18dc3.3.7"


@pytest.mark.parametrize("found", [(), ("/my site/numpy/.libs/libopenblasp-r0.so",), ("/a,b/libopenblasp-r0.so",)])
def test_a_blas_that_flags_cannot_name_is_left_alone(monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...]) -> None:
    wheel(monkeypatch, *found)
    assert theano.blas() == ""
    assert theano.linked("") == "NumPy's, through NumPy"


def test_lasagne_keeps_weights_by_gate_and_gives_them_back() -> None:
    case = {**NETWORKS["asr-lstm/4x320-ce-long"], "steps": 2, "batch": 2, "hidden": 3, "inputs": 2}
    _, weights = materialise(case)
    program: Any = object.__new__(lasagne.LasagneLstmLayer)
    program.weights = program.stored(weights)
    kept = program.weights["layer1/reverse/recurrent forgetgate"]
    np.testing.assert_array_equal(kept, weights["layer1/reverse/recurrent"][:, 3:6])
    back = program.canonical(program.weights)
    assert sorted(back) == sorted(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(back[name], array)
    assert [len(names) for names in program.tensors()] == [4] * 24 + [1]


class Block:
    """A stand-in for RNNBlock: matrices one after the other, then biases, of a bidirectional GRU of two layers."""

    def split_params(self, buffer: Any, layer: int, size: list[int]) -> list[Any]:
        """Return matrix and bias of each gate, of the inputs and then of the states, as views."""
        views: list[Any] = []
        start = 0
        for k in range(layer + 1):
            inputs = size[1] if k < 2 else 6
            views = []
            for rows in (inputs, inputs, inputs, 3, 3, 3):
                views.append(buffer.array[start : start + rows * 3].reshape(rows, 3))
                views.append(buffer.array[start + rows * 3 : start + rows * 3 + 3])
                start += rows * 3 + 3
        return views


class Shared:
    """A stand-in for a shared variable on a GPU."""

    def __init__(self, array: Any) -> None:
        """Hold a copy."""
        self.array = array.copy()

    def get_value(self, **_: bool) -> Any:
        """Return a copy."""
        return self.array.copy()

    def set_value(self, array: Any) -> None:
        """Take a copy."""
        self.array = array.copy()


def test_cudnn_packs_and_unpacks_by_views(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("theano.gpuarray.type")
    module.gpuarray_shared_constructor = Shared
    monkeypatch.setitem(sys.modules, "theano.gpuarray.type", module)
    sizes = {"layers": 2, "bidirectional": True, "steps": 2, "batch": 2, "hidden": 3, "inputs": 2}
    case = {**NETWORKS["rnn-step/gru-b32-h128"], **sizes}
    _, weights = materialise(case)
    program: Any = object.__new__(cudnn.TheanoCudnn)
    program.case, program.size, program.block = case, [2, 2], Block()
    size = 2 * (3 * (2 * 3 + 3) + 3 * (3 * 3 + 3)) + 2 * (3 * (6 * 3 + 3) + 3 * (3 * 3 + 3))
    program.scratch = Shared(np.zeros(size, np.float32))
    packed = program._packed(weights)
    second_biases = size - sum(array.size for array in weights.values())
    assert np.count_nonzero(packed == 0) == second_biases == 4 * 9
    np.testing.assert_array_equal(packed[:6].reshape(2, 3), weights["layer0/kernel"][:, :3])
    back = program.canonical({"params": packed})
    assert sorted(back) == sorted(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(back[name], array)
