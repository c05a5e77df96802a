"""The machines of CI are slow and busy: there, an input may take longer than in a long run."""

import pytest

from tests.fuzz import limits


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 5 * limits.SECONDS)
    monkeypatch.setattr(limits, "WAIT_SECONDS", 5 * limits.WAIT_SECONDS)
