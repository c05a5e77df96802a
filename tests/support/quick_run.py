"""A run of the size of the preset ``quick`` on two cores: 28 comparisons in six pairs, A/A controls, 10 tests alone."""

import math
import random
from pathlib import Path
from typing import Any

from runner.core.model.cells import TWIN
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make

STEP = ("rnn-step", "lstm-b32-h128", "forward", "fp32")
SEQUENCE = ("rnn-sequence", "lstm-l3-t30-b32-h128", "gradient", "fp32")
SPEECH = ("asr-lstm", "2x64-ctc-small", "train", "fp32")
WORDS = ("lm-lstm", "lm-small", "train", "fp32")
WIDE = ("deepbench-gemm", "train-001-1760x16x1760-nn", "forward", "fp32")
TALL = ("deepbench-gemm", "server-013-3072x2x1024-nn", "forward", "fp32")
SUM, LONG_SUM = (
    ("deepbench-allreduce", f"train-{case}-c2", "forward", "fp32") for case in ("001-100000", "002-3097600")
)
CONVOLUTION = ("deepbench-conv", "server-105-7x7x832-n1-k256-1x1", "forward", "fp32")
SPARSE = ("deepbench-sparse", "server-001-7680x1x2560-0.95", "forward", "fp32")
Test = tuple[str, str, str, str]
"""Workload, case, phase, precision."""

RELEASES = {
    "torch-1.0": "1.0.0",
    "torch-1.12": "1.12.1",
    "torch-2.x": "2.13.0",
    "tf-1.8": "1.8.0",
    "tf-1.15": "1.15.5",
    "tf-2.x": "2.21.0",
    "keras-2.1-tf": "2.1.6",
    "keras-2.1-theano": "2.1.6",
    "keras-3": "3.15.1",
    "jax-0.10": "0.10.2",
    "theano-0.8": "0.8.2",
}
BACKENDS = {
    "keras-2.1-tf": ("tensorflow", "1.8.0"),
    "keras-2.1-theano": ("theano", "1.0.1"),
    "keras-3": ("tensorflow", "2.21.0"),
}
"""Environment of Keras -> its backend and the version of it."""

TIMES: dict[tuple[Test, str], dict[str, float]] = {
    (TALL, "matmul"): {"torch-1.0": 0.289, "torch-2.x": 0.534, "tf-1.8": 1.171, "tf-2.x": 0.512, "jax-0.10": 0.62},
    (WIDE, "matmul"): {"torch-1.0": 1.93, "torch-2.x": 1.08, "tf-1.8": 1.333, "tf-2.x": 0.837, "jax-0.10": 0.9},
    ((*TALL[:3], "int8"), "matmul"): {"tf-1.8": 2.13, "tf-2.x": 1.60},
    ((*WIDE[:3], "int8"), "matmul"): {"tf-1.8": 2.55, "tf-2.x": 2.50},
    (SUM, "allreduce-gloo"): {"torch-1.0": 0.511, "torch-2.x": 0.812},
    (LONG_SUM, "allreduce-gloo"): {"torch-1.0": 15.2, "torch-2.x": 9.58},
    (STEP, "lstm-cell-basic"): {"torch-1.0": 8.35, "torch-1.12": 6.85, "torch-2.x": 4.23},
    (STEP, "nn-lstm"): {"torch-1.0": 9.62, "torch-1.12": 7.15, "torch-2.x": 1.67},
    (STEP, "lstm-block-fused-cell"): {"tf-1.8": 7.89, "tf-1.15": 5.29, "tf-2.x": 5.14},
    (STEP, "basic-lstm-cell"): {"tf-1.8": 5.24, "tf-1.15": 5.16, "tf-2.x": 3.42},
    (STEP, "keras-lstm"): {"keras-2.1-tf": 6.96, "keras-2.1-theano": 10.9, "keras-3": 3.79},
    (STEP, "jax-scan"): {"jax-0.10": 1.21},
    (STEP, "lasagne-lstm-layer"): {"theano-0.8": 14.1},
    (SEQUENCE, "nn-lstm"): {"torch-1.0": 226.0, "torch-2.x": 20.3},
    (SEQUENCE, "lstm-block-fused-cell"): {"tf-1.8": 61.0, "tf-2.x": 67.6},
    (SEQUENCE, "keras-lstm"): {"keras-2.1-tf": 108.0, "keras-3": 41.6},
    (SEQUENCE, "jax-scan"): {"jax-0.10": 14.4},
    (SPEECH, "nn-lstm"): {"torch-1.0": 104.0, "torch-2.x": 39.1},
    (SPEECH, "lstm-block-fused-cell"): {"tf-1.8": 31.8, "tf-2.x": 25.1},
    (SPEECH, "keras-lstm"): {"keras-2.1-tf": 57.6, "keras-3": 44.1},
    (SPEECH, "jax-scan"): {"jax-0.10": 29.0},
    (WORDS, "lstm-cell-basic"): {"torch-1.0": 24.9, "torch-2.x": 10.3},
    (WORDS, "nn-lstm"): {"torch-1.0": 23.6, "torch-2.x": 2.85},
    (WORDS, "lstm-block-fused-cell"): {"tf-1.8": 7.82, "tf-2.x": 6.02},
    (WORDS, "keras-lstm"): {"keras-2.1-tf": 13.2, "keras-3": 9.52},
    (WORDS, "jax-scan"): {"jax-0.10": 3.3},
    (CONVOLUTION, "conv2d"): {"torch-2.x": 0.7},
    (SPARSE, "sparse-coo"): {"torch-2.x": 2.1},
    (SPARSE, "sparse-csr"): {"torch-2.x": 1.9},
}
"""Test and API -> environment -> milliseconds of a step."""
UNSETTLED = (STEP, "nn-lstm", "torch-1.0")
"""Its calls become four times as long while they are measured, in every round."""
CONTROLLED = (STEP, SEQUENCE)
"""The tests with an A/A control of both ends of PyTorch."""


def quick(reports: Path, *, later: int = 0, seed: int = 3, rounds: int = 5) -> Run:
    """Make the run, ``later`` minutes after the first day of ``fake_runs``."""
    draw, records = random.Random(seed), []
    order = list(RELEASES)
    for (test, slug), times in TIMES.items():
        workload, case, phase, precision = test
        for number in range(rounds):
            for environment, milliseconds in times.items():
                of = cell(environment, slug, workload=workload, case=case, phase=phase, precision=precision)
                names = [environment]
                if slug == "nn-lstm" and test in CONTROLLED and environment != "torch-1.12":
                    names.append(environment + TWIN)
                for name in names:
                    center = milliseconds / 1000 * math.exp(draw.gauss(0, 0.03))
                    grows = (test, slug, environment) == UNSETTLED
                    samples = [center * (4 ** (i / 20) if grows else math.exp(draw.gauss(0, 0.01))) for i in range(20)]
                    release = RELEASES[environment]
                    records.append(good(cell(name, slug, **_parts(of)), number, samples, release=release))
    records.sort(key=lambda each: order.index(each.cell.environment.removesuffix(TWIN)))
    run = make(reports, records, later=later)
    known = run.environments()
    for name, facts in known.items():
        facts.update(_facts(name.removesuffix(TWIN)))
    run.write_environments(known)
    return run


def _parts(of: Any) -> dict[str, str]:
    return {name: getattr(of, name) for name in ("workload", "case", "phase", "precision")}


def _facts(environment: str) -> dict[str, str]:
    backend, version = BACKENDS.get(environment, ("venv", ""))
    return {"release": RELEASES[environment], "backend": backend, "backend_version": version}
