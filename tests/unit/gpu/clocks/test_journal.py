"""Where it is written down what clocks were before, and who reads it."""

from pathlib import Path

import pytest

from runner.gpu.clocks.journal import ClockEntry, folder, folders, ledger
from runner.gpu.types import ClockPair

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


def test_what_is_written_down_is_read_back(tmp_path: Path) -> None:
    book = ledger(tmp_path / "new", UUID)
    assert book.read() is None
    entry = book.write(ClockEntry(uuid=UUID, name="H200", run="r", before=ClockPair(2619, 1500)))
    assert book.read() == entry
    book.will("sm")
    book.will("memory")
    book.will("sm")
    book.was_refused("memory")
    book.holds("SM base")
    changed = book.read()
    assert changed is not None
    assert (changed.undo, changed.held, changed.before) == (("sm",), "SM base", ClockPair(2619, 1500))
    book.close()
    book.close()
    assert book.read() is None
    with pytest.raises(ValueError, match="no UUID"):
        ledger(tmp_path, "../../etc/passwd")


def test_root_writes_in_one_place_for_the_machine() -> None:
    machine, users = Path("/var/lib/matrix-runner/clocks"), Path("/s/matrix-runner/clocks")
    assert folder({"HOME": "/root"}, 0) == machine
    assert folder({"HOME": "/home/a"}, 1000) == Path("/home/a/.local/state/matrix-runner/clocks")
    assert folder({"XDG_STATE_HOME": "/s"}, 0) == folder({"XDG_STATE_HOME": "/s"}, 1000) == users
    assert folder({"XDG_STATE_HOME": "s", "HOME": "/h"}, 0) == machine
    assert folders({"XDG_STATE_HOME": "/s"}, 1000) == (users, machine)
    assert folders({"XDG_STATE_HOME": "/s"}, 0) == (users,)
    assert ClockEntry(uuid=UUID, boot="another").gone
    assert not ClockEntry(uuid=UUID).gone
