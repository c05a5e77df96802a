"""What the PyTorch implementations declare, on a machine without PyTorch."""

import math
import sys
from typing import Any

import pytest

from runner.catalog.cases.recurrent import case
from runner.harness import adapters
from runner.harness.adapters import torch
from runner.harness.adapters.torch import stack

CLASSES = {chosen.slug: chosen for chosen in torch.IMPLEMENTATIONS if chosen.cells}
ON_CPU = [slug for slug, chosen in CLASSES.items() if "cpu" in chosen.devices]
NEWEST = (2, math.inf)


def lacks(
    slug: str,
    cell: str = "lstm",
    release: tuple[float, ...] = NEWEST,
    device: str = "cpu",
    precision: str = "fp32",
    **sizes: Any,
) -> Any:
    defaults = {"ragged": slug.endswith("padded"), "workload": "rnn-step", "loss": "mse"}
    return CLASSES[slug].lacks(dict(case(cell=cell, **{**defaults, **sizes})), release, device, precision)


def test_reading_the_classes_needs_no_pytorch() -> None:
    assert adapters.implementations("torch") == torch.IMPLEMENTATIONS
    assert "torch" not in sys.modules


def test_each_class_has_its_own_slug_and_declares_its_kind() -> None:
    slugs = [chosen.slug for chosen in torch.IMPLEMENTATIONS]
    assert len(set(slugs)) == len(slugs)
    assert {chosen.kind for chosen in torch.IMPLEMENTATIONS} <= {"flexible", "fused", "vendor"}


@pytest.mark.parametrize("slug", CLASSES)
def test_the_newest_release_lacks_nothing_on_either_device(slug: str) -> None:
    for cell in CLASSES[slug].cells:
        assert slug not in ON_CPU or lacks(slug, cell) is None
        assert lacks(slug, cell, device="cuda", precision="tf32") is None


@pytest.mark.parametrize(
    ("slug", "cell", "sentence"),
    [
        ("nn-lstm", "rnn", "nn-lstm computes lstm only"),
        ("rnn-cell-basic", "lstm", "rnn-cell-basic computes rnn and relu only"),
        ("nn-lstm-padded", "gru", "nn-lstm-padded computes lstm only"),
    ],
)
def test_lacks_names_the_cells_that_a_class_computes(slug: str, cell: str, sentence: str) -> None:
    assert lacks(slug, cell) == ("framework-lacks", sentence)


@pytest.mark.parametrize(
    ("slug", "before", "since", "sentence"),
    [
        ("torchscript-cell", (0, 4, 1), (1, 0, 0), "torchscript-cell came with 1.0"),
        ("compiled-cell", (1, 13, 1), (2, 0, 0), "compiled-cell came with 2.0"),
    ],
)
def test_class_runs_from_the_release_it_came_with(
    slug: str, before: tuple[int, ...], since: tuple[int, ...], sentence: str
) -> None:
    assert lacks(slug, release=before) == ("framework-lacks", sentence)
    assert lacks(slug, release=since) is None


def test_ctc_needs_1_0() -> None:
    reason = "CTC needs PyTorch 1.0 or later; earlier, it was an extension, warp-ctc"
    assert lacks("nn-lstm", release=(0, 4, 1), loss="ctc") == ("framework-lacks", reason)
    assert lacks("nn-lstm", release=(1, 0, 0), loss="ctc") is None


def test_padded_lstm_concerns_ragged_lstm_cases_only() -> None:
    padded = CLASSES["nn-lstm-padded"]
    assert not padded.concerns({"cell": "lstm", "ragged": False})
    assert padded.concerns({"cell": "lstm", "ragged": True})
    assert not padded.concerns({"cell": "gru", "ragged": True})


def test_reversal_keeps_steps_after_the_end_of_a_sample() -> None:
    rows = stack.reversal((2, 3), 4)
    assert rows.reshape(4, 2).tolist() == [[2, 5], [0, 3], [4, 1], [6, 7]]
    assert rows[rows].tolist() == list(range(8))


@pytest.mark.parametrize("slug", ["lstm-cell-basic", "lstm-cell-fused", "nn-lstm"])
def test_first_classes_run_in_the_oldest_release(slug: str) -> None:
    assert lacks(slug, release=(0, 1, 12)) is None


def test_tf32_needs_a_gpu_and_1_7() -> None:
    assert lacks("nn-lstm", precision="tf32") == ("precision-lacks", "nn-lstm does not compute tf32 on cpu")
    old = lacks("nn-lstm", release=(1, 6), device="cuda", precision="tf32")
    assert old == ("precision-lacks", "TF32 needs PyTorch 1.7 or later")
    assert lacks("nn-lstm", release=(1, 7), device="cuda", precision="tf32") is None


def test_autocast_trains_every_class_in_fp16_on_a_gpu() -> None:
    for slug, chosen in CLASSES.items():
        assert lacks(slug, chosen.cells[0], device="cuda", precision="fp16") is None
    old = lacks("nn-lstm", release=(1, 6), device="cuda", precision="fp16")
    assert old == ("precision-lacks", "fp16 in mixed precision on a GPU is measured from release 1.7 on")


def test_autocast_computes_cudnns_layers_in_fp16_even_if_it_is_given_bf16() -> None:
    reason = "autocast computes cuDNN's layers in fp16 where it should compute in bf16"
    for slug in ("nn-lstm", "nn-lstm-padded", "nn-lstm-graph"):
        assert lacks(slug, device="cuda", precision="bf16") == ("precision-lacks", reason)
    assert lacks("nn-gru", "gru", device="cuda", precision="bf16") == ("precision-lacks", reason)
    assert lacks("lstm-cell-basic", device="cuda", precision="bf16") is None
    assert lacks("nn-lstm", device="cuda", precision="bf16", workload="deepbench-rnn") is None
    old = lacks("nn-lstm", release=(2, 10), device="cuda", precision="bf16", workload="deepbench-rnn")
    assert old == ("precision-lacks", "bf16 with weights in 16 bits on a GPU is measured from release 2.11 on")


@pytest.mark.parametrize("slug", ON_CPU)
def test_a_cpu_computes_bf16_in_the_tested_releases(slug: str) -> None:
    since = max((1, 12), CLASSES[slug].since)
    cell = CLASSES[slug].cells[0]
    if slug == "torchscript-cell":
        since = (2, 4)
    assert lacks(slug, cell, release=since, precision="bf16") is None
    if since == (1, 12):
        assert lacks(slug, cell, release=(1, 11), precision="bf16")[0] == "precision-lacks"


def test_onednn_has_no_lstm_in_fp16() -> None:
    reason = "oneDNN has no LSTM in fp16 on most processors"
    assert lacks("nn-lstm", precision="fp16") == ("precision-lacks", reason)
    assert lacks("nn-gru", "gru", precision="fp16") is None


@pytest.mark.parametrize("slug", ["nn-lstm-graph", "lstm-cell-basic-graph"])
def test_cuda_graphs_need_a_gpu_and_an_adam_that_counts_on_it(slug: str) -> None:
    assert lacks(slug) == ("needs-gpu", "a CUDA graph needs a GPU")
    assert lacks(slug, release=(1, 12), device="cuda") is None
    for device in ("cpu", "cuda"):
        assert lacks(slug, release=(1, 11), device=device) == ("framework-lacks", f"{slug} came with 1.12")
    assert lacks(slug, device="cuda", loss="ctc") == ("framework-lacks", f"{slug} has no ctc loss")


def test_libraries_returns_the_shortened_lines() -> None:
    text = (
        "PyTorch built with:\n  - GCC 7.3\n"
        "  - Intel(R) Math Kernel Library Version 2020.0.0 Product Build 20191122 for Intel(R) 64 architecture\n"
        "  - Intel(R) MKL-DNN v2.6.0 (Git Hash 52b5f1)\n  - OpenMP 201511 (a.k.a. OpenMP 4.5)\n"
        "  - CPU capability usage: AVX2\n  - Build settings: BLAS_INFO=mkl, "
        "CXX_FLAGS= -Wno-deprecated -fopenmp -O2 -fPIC -mavx2 -fno-math-errno -Wall, USE_OPENMP=ON\n"
    )
    assert torch.libraries(text) == {
        "blas": "Intel(R) Math Kernel Library Version 2020.0.0",
        "compiler": "GCC 7.3",
        "compiler_flags": "-O2 -mavx2 -fno-math-errno",
        "cpu": "CPU capability usage: AVX2",
        "onednn": "Intel(R) MKL-DNN v2.6.0",
        "openmp": "OpenMP 201511",
    }
