"""Steps that a signal to stop does not interrupt."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from runner.core.uninterrupted import is_uninterrupted, uninterrupted


def test_a_block_counts_until_its_end_however_it_ends() -> None:
    assert not is_uninterrupted()
    with uninterrupted():
        with uninterrupted():
            assert is_uninterrupted()
        assert is_uninterrupted()
    with pytest.raises(OSError, match="x"), uninterrupted():
        raise OSError("x")
    assert not is_uninterrupted()


def test_a_block_in_another_thread_does_not_count() -> None:
    def in_a_block() -> bool:
        with uninterrupted():
            return is_uninterrupted()

    with ThreadPoolExecutor(1) as threads:
        assert not threads.submit(in_a_block).result()
