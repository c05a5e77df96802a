"""What makes two entries the same run."""

from runner.history.entries import series_device
from tests.support.histories import measured, night


def test_the_digest_is_of_the_content_and_not_of_the_folder() -> None:
    entry = night(1)
    assert entry.digest == night(1, source="/elsewhere").digest
    assert len({entry.digest, night(2).digest, night(1, measured()).digest, night(1, driver="590").digest}) == 4


def test_the_extent_counts_rounds_and_changes() -> None:
    assert night(1, measured(), measured("a/b/c/d/e/f", rounds=7)).extent == (12, 0)


def test_several_gpus_of_a_kind_are_one_device() -> None:
    assert series_device("docker", "2 x NVIDIA H200") == series_device("docker", "NVIDIA H200") == "docker NVIDIA H200"
    assert series_device("venv", "AMD EPYC 7B13") == "venv AMD EPYC 7B13"
