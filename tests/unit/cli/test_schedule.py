"""What `runner schedule` refuses at once, because the night would."""

from pathlib import Path

import pytest

from runner.cli.schedule import _check_nightly_options
from runner.core.errors import UsageError


def test_the_options_of_a_night_are_checked_with_the_matrix_that_it_will_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no matrix file is: the night takes that of the program
    _check_nightly_options(("--preset", "quick"))
    with pytest.raises(UsageError, match=r"there is no preset 'quikc' in .*matrix\.yaml"):
        _check_nightly_options(("--preset", "quikc"))
