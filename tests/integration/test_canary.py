"""The process that times a fixed product."""

import os

import pytest

from runner.core.errors import RunnerError
from runner.measure.canary import CanaryProcess


def test_one_process_answers_again_and_again_and_ends_with_the_block() -> None:
    with CanaryProcess(1) as canary:
        assert canary.process is None
        assert 0 < canary() < 10
        process = canary.process
        assert 0 < canary() < 10
        assert canary.process is process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


def test_ctrl_c_does_not_reach_the_process() -> None:
    with CanaryProcess(1) as canary:
        canary()
        assert canary.process is not None
        assert os.getpgid(canary.process.pid) != os.getpgrp()


def test_a_process_that_ended_is_an_error() -> None:
    with CanaryProcess(1) as canary:
        canary()
        assert canary.process is not None
        canary.process.kill()
        canary.process.wait()
        with pytest.raises(RunnerError, match=r"the canary process ended with exit code -9"):
            canary()
