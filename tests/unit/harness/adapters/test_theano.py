"""What the Theano implementations declare, and how their weights are stored, on a machine without Theano."""

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

CLASSES: dict[str, Any] = {kind.slug: kind for kind in theano.IMPLEMENTATIONS if kind.cells}
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


def test_slugs_are_unique_and_kinds_are_known() -> None:
    assert len({kind.slug for kind in theano.IMPLEMENTATIONS}) == len(theano.IMPLEMENTATIONS)
    assert {implementation.kind for implementation in theano.IMPLEMENTATIONS} <= {"flexible", "fused", "vendor"}


@pytest.mark.parametrize("release", [LAST_OF_LASAGNE, FIRST_OF_GPUARRAY, NEWEST])
@pytest.mark.parametrize("name", WITHOUT_CTC)
def test_scan_computes_everything_but_ctc(name: str, release: tuple[int, ...]) -> None:
    assert lacks("theano-scan", name, release) is None


@pytest.mark.parametrize("slug", CLASSES)
def test_ctc_needs_libwarpctc(slug: str) -> None:
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
def test_lasagne_lacks_other_cells_and_carried_states(case: str, sentence: str) -> None:
    code, reason = lacks("lasagne-lstm-layer", case)
    assert code == "framework-lacks"
    assert sentence in reason


def test_lasagne_went_with_theano_0_9() -> None:
    assert lacks("lasagne-lstm-layer") is None
    code, reason = lacks("lasagne-lstm-layer", release=FIRST_OF_GPUARRAY)
    assert code == "framework-lacks"
    assert "cannot be imported with Theano 0.9" in reason


def test_cudnn_needs_a_gpu_and_theano_0_9() -> None:
    assert lacks("theano-cudnn", release=NEWEST) == ("needs-gpu", "theano-cudnn has no CPU kernel")
    assert lacks("theano-cudnn", release=NEWEST, device="cuda") is None
    assert lacks("theano-cudnn", "rnn-step/gru-l3-b32-h128", NEWEST, "cuda") is None
    assert lacks("theano-cudnn", "rnn-step/rnn-b32-h128", NEWEST, "cuda")[0] == "framework-lacks"
    for slug in ("theano-scan", "theano-cudnn"):
        assert lacks(slug, device="cuda")[0] == "framework-lacks"


def test_cudnn_cannot_clip_the_norm_of_one_tensor() -> None:
    code, reason = lacks("theano-cudnn", "lm-lstm/template-2x64", NEWEST, "cuda")
    assert code == "framework-lacks"
    assert "no tensor has its own norm" in reason


def test_tf32_is_not_available() -> None:
    assert CLASSES["theano-scan"].lacks(STEP, NEWEST, "cuda", "tf32")[0] == "precision-lacks"


def test_given_flags_take_precedence() -> None:
    flags = theano.flags("base_compiledir=/cache,openmp=False", 4, "-lblas")
    assert flags == "base_compiledir=/cache,openmp=False,floatX=float32,device=cpu,blas.ldflags=-lblas"


def test_without_a_cache_theano_compiles_in_the_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmp-folder")
    assert theano.flags("", 1, "") == "base_compiledir=/tmp-folder/theano,floatX=float32,device=cpu,openmp=False"


def put_in_wheel(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """Let NumPy's wheel contain the libraries ``paths``."""
    monkeypatch.setattr("glob.glob", lambda _: list(paths))


def test_the_blas_of_numpys_wheel_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_wheel(monkeypatch, "/site/numpy/.libs/libopenblasp-r0-34a18dc3.3.7.so")
    assert theano.blas() == "-L/site/numpy/.libs -lopenblasp-r0-34a18dc3.3.7"
    assert theano.linked(theano.blas()) == "openblasp-r0-34a18dc3.3.7"


@pytest.mark.parametrize("paths", [(), ("/my site/numpy/.libs/libopenblasp-r0.so",), ("/a,b/libopenblasp-r0.so",)])
def test_a_blas_that_flags_cannot_name_is_not_linked(monkeypatch: pytest.MonkeyPatch, paths: tuple[str, ...]) -> None:
    put_in_wheel(monkeypatch, *paths)
    assert theano.blas() == ""
    assert theano.linked("") == "NumPy's, through NumPy"


def assert_same_arrays(arrays: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sorted(arrays) == sorted(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_lasagne_stores_weights_by_gate_and_canonical_undoes_it() -> None:
    case = {**NETWORKS["asr-lstm/4x320-ce-long"], "steps": 2, "batch": 2, "hidden": 3, "inputs": 2}
    _, weights = materialise(case)
    program: Any = object.__new__(lasagne.LasagneLstmLayer)
    program.weights = program.stored(weights)
    forget_gate = program.weights["layer1/reverse/recurrent forgetgate"]
    np.testing.assert_array_equal(forget_gate, weights["layer1/reverse/recurrent"][:, 3:6])
    assert_same_arrays(program.canonical(program.weights), weights)
    assert [len(names) for names in program.groups()] == [4] * 24 + [1]


SIZE = 2 * (3 * (2 * 3 + 3) + 3 * (3 * 3 + 3)) + 2 * (3 * (6 * 3 + 3) + 3 * (3 * 3 + 3))


class Block:
    """A fake RNNBlock: each matrix is followed by its bias, of a bidirectional GRU of two layers, 2 inputs, 3 units."""

    def __init__(self, *options: Any) -> None:
        """Take the options of RNNBlock."""
        assert options == ("float32", 3, 2, "gru", "linear", "bidirectional")

    def get_param_size(self, input_size: list[int]) -> int:
        """Return the length of the buffer."""
        assert input_size == [2, 2]
        return SIZE

    def split_params(self, buffer: Any, layer: int, size: list[int]) -> list[Any]:
        """Return views of matrix and bias of each gate, of the inputs and then of the states."""
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
    """A fake shared variable on a GPU."""

    def __init__(self, array: Any) -> None:
        """Hold a copy."""
        self.array = array.copy()

    def get_value(self, **_: bool) -> Any:
        """Return a copy."""
        return self.array.copy()

    def set_value(self, array: Any) -> None:
        """Take a copy."""
        self.array = array.copy()


@pytest.fixture
def cudnn_program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A TheanoCudnn that is not built, on a Theano with RNNBlock and shared variables alone."""
    modules: dict[str, dict[str, Any]] = {
        "theano": {"shared": Shared},
        "theano.gpuarray": {},
        "theano.gpuarray.dnn": {"RNNBlock": Block},
        "theano.gpuarray.type": {"gpuarray_shared_constructor": Shared},
    }
    for name, attributes in modules.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    vars(sys.modules["theano.gpuarray"])["dnn"] = sys.modules["theano.gpuarray.dnn"]
    program: Any = object.__new__(cudnn.TheanoCudnn)
    sizes = {"layers": 2, "bidirectional": True, "steps": 2, "batch": 2, "hidden": 3, "inputs": 2}
    program.case = {**NETWORKS["rnn-step/gru-b32-h128"], **sizes}
    return program


def test_cudnn_stores_weights_in_one_buffer_and_canonical_undoes_it(cudnn_program: Any) -> None:
    _, weights = materialise(cudnn_program.case)
    stored = cudnn_program.stored(weights)
    assert list(stored) == ["params"]
    np.testing.assert_array_equal(stored["params"][:6].reshape(2, 3), weights["layer0/kernel"][:, :3])
    assert_same_arrays(cudnn_program.canonical(stored), weights)


def test_second_biases_of_cudnn_are_zero_and_masked(cudnn_program: Any) -> None:
    _, weights = materialise(cudnn_program.case)
    params = cudnn_program.stored(weights)["params"]
    mask = cudnn_program.mask.get_value()
    assert np.count_nonzero(mask == 0) == 4 * 9 == SIZE - sum(array.size for array in weights.values())
    assert set(mask) == {0, 1}
    np.testing.assert_array_equal(mask != 0, params != 0)
