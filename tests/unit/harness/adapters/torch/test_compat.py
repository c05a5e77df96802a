"""How many GPUs a release of PyTorch counts, with a stand-in for torch.cuda."""

from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.torch import compat

UUID = "GPU-5a88edbe-90c4-2449-8c43-70c57591cca1"


def _cuda(count_by_nvml: Callable[[], int], **others: Any) -> Any:
    """Return torch.cuda of a release that asks NVML first, on a machine with one GPU."""
    cuda = SimpleNamespace(_device_count_nvml=count_by_nvml, **others)

    @lru_cache(maxsize=1)
    def device_count() -> int:
        count: int = cuda._device_count_nvml()
        return 1 if count < 0 else count

    cuda.device_count = device_count
    return cuda


def test_a_release_that_cannot_read_uuids_counts_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", UUID)
    cuda = _cuda(lambda: 0)
    assert cuda.device_count() == 0  # as an import may have asked, and PyTorch keeps the answer
    compat.count_gpus_by_cuda(cuda)
    assert cuda.device_count() == 1


def test_a_release_that_reads_uuids_keeps_asking_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", UUID)
    cuda = _cuda(lambda: 7, _raw_device_uuid_nvml=list)
    compat.count_gpus_by_cuda(cuda)
    assert cuda.device_count() == 7


def test_a_run_on_the_cpu_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cuda = _cuda(lambda: 0)
    compat.count_gpus_by_cuda(cuda)
    assert cuda.device_count() == 0


def test_a_release_that_never_asks_nvml_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", UUID)
    cuda = SimpleNamespace(device_count=lambda: 1)
    compat.count_gpus_by_cuda(cuda)
    assert vars(cuda).keys() == {"device_count"}
