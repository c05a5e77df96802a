"""The rates of cases of DeepBench, against operations that were worked out by hand."""

import pytest

from runner.catalog.cases import CASES
from runner.report.throughput import bandwidth, operations, without_inputs

BY_HAND = {  # case and phase -> operations
    ("deepbench-gemm/train-001-1760x16x1760-nn", "forward"): 99_123_200,  # 2 x 1760 x 16 x 1760
    ("deepbench-gemm/train-160-1024x32x512-nt", "forward"): 33_554_432,  # 2 x 1024 x 32 x 512
    ("deepbench-gemm/server-001-5124x700x2048-nn", "forward"): 14_691_532_800,
    ("deepbench-gemm/server-002-35x700x2048-nn", "forward"): 100_352_000,
    ("deepbench-gemm/server-031-3072x3000x1024-nn", "forward"): 18_874_368_000,
    ("deepbench-gemm/device-004-64x1x1216-nn", "forward"): 155_648,
    # 2 x 341 x 79 x 4 x 32 x 1 x 20 x 5, and the same back to the filters
    ("deepbench-conv/train-001-700x161x1-n4-k32-20x5", "forward"): 689_638_400,
    ("deepbench-conv/train-001-700x161x1-n4-k32-20x5", "backward-weights"): 689_638_400,
    ("deepbench-conv/train-038-56x56x64-n8-k256-1x1", "backward-inputs"): 205_520_896,  # 2 x 28 x 28 x 8 x 256 x 64
    ("deepbench-conv/server-006-341x79x32-n4-k32-10x5", "forward"): 2_583_756_800,  # of 166 x 38
    ("deepbench-conv/server-079-56x56x256-n1-k128-1x1", "forward"): 51_380_224,  # of 28 x 28
    ("deepbench-conv/device-002-112x112x64-n1-k64-1x1", "forward"): 102_760_448,
    # with the product of the inputs: 2 x 50 x 16 x 1760 x (1760 + 1760); back without the inputs' own gradient
    ("deepbench-rnn/train-001-vanilla-h1760-b16-t50", "forward"): 9_912_320_000,
    ("deepbench-rnn/train-001-vanilla-h1760-b16-t50", "gradient"): 24_780_800_000,
    ("deepbench-rnn/server-001-lstm-h512-b1-t25", "forward"): 104_857_600,  # 2 x 25 x 4 x 512 x 1024
    ("deepbench-rnn/device-003-lstm-h256-b1-t150", "forward"): 157_286_400,  # 2 x 150 x 4 x 256 x 512
    ("deepbench-rnn/server-016-gru-h2816-b1-t1500", "forward"): 142_737_408_000,  # 2 x 1500 x 3 x 2816 x 5632
    ("deepbench-sparse/server-001-7680x1x2560-0.95", "forward"): 1_966_080,  # one in twenty of 39,321,600
    ("deepbench-sparse/server-012-10752x6000x3584-0.95", "forward"): 23_121_100_800,
    ("deepbench-sparse/device-007-10752x1x3584-0.90", "forward"): 7_707_034,  # of 77,070,336, rounded
}


@pytest.mark.parametrize("key", BY_HAND, ids="/".join)
def test_operations_match_those_worked_out_by_hand(key: tuple[str, str]) -> None:
    case, phase = key
    for seconds in (1.0, 0.0025):
        assert operations(case, phase, seconds) == pytest.approx(BY_HAND[key] / seconds, rel=1e-12)
    assert operations(case, f"{phase}+published", 2.0) == BY_HAND[key] / 2  # the same program, as often as the original


def test_a_recurrent_layer_also_has_the_rate_of_deepbench_s_tables() -> None:
    lstm = "deepbench-rnn/server-012-lstm-h1536-b4-t50"  # 0.55 TFLOP/s in 6.93 ms, as its blog prints it
    assert without_inputs(lstm, "forward", 6.93e-3) == "545 GFLOP/s without the inputs"
    train = "deepbench-rnn/train-001-vanilla-h1760-b16-t50"
    forward = 2 * 50 * 16 * 1760**2 + 50 * 16 * 1760
    assert without_inputs(train, "gradient", 1.0) == f"{3 * forward / 1e9:.3g} GFLOP/s without the inputs"
    assert without_inputs("rnn-step/lstm-b32-h128", "forward", 1.0) == ""


def test_the_dense_variant_counts_the_zeros() -> None:
    case = "deepbench-sparse/server-001-7680x1x2560-0.95"
    assert operations(case, "forward", 1.0, "sparse-dense") == 39_321_600
    assert operations(case, "forward", 1.0, "sparse-csr") == 1_966_080
    assert bandwidth(case, "fp32", 1e-3, "sparse-dense") == "78.7 GB/s"  # 4 x (7680 x 2560 + 2560 + 7680)


@pytest.mark.parametrize(
    ("case", "precision", "moved"),
    [
        ("deepbench-allreduce/train-001-100000-c2", "fp32", "0.800 GB/s"),  # 4 x 100,000 x 2 in a millisecond
        ("deepbench-allreduce/train-007-64500000-c2", "fp32", "516 GB/s"),
        ("deepbench-gemm/device-004-64x1x1216-nn", "fp32", "0.316 GB/s"),  # 4 x (77,824 + 1,216 + 64)
        ("deepbench-gemm/device-004-64x1x1216-nn", "bf16", "0.158 GB/s"),
        ("deepbench-gemm/device-004-64x1x1216-nn", "int8", "0.0793 GB/s"),  # 77,824 + 1,216 + 4 x 64
        ("deepbench-sparse/server-001-7680x1x2560-0.95", "fp32", "7.91 GB/s"),  # 8 x 983,040 + 4 x (2560 + 7680)
        ("rnn-step/lstm-b32-h128", "fp32", ""),
    ],
)
def test_bandwidth_counts_the_bytes_an_operation_moves(case: str, precision: str, moved: str) -> None:
    assert case in CASES
    assert bandwidth(case, precision, 1e-3) == moved
