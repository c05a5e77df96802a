"""The boards of a run: which device of which host measured what, and which rounds are independent because of it.

A board is a GPU, or the processor of a host. Two boards of one kind differ by some percent, in what clocks their power
and heat allow, so a ratio compares two times of one board, and a board is a level of its own in the statistics.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

UUID_LETTERS = 8
"""Letters of a GPU's UUID, after ``GPU-``, that tell the boards of a lab apart."""
COLUMNS = ("device_name", "host", "device_uuid")


class Board(NamedTuple):
    """A device that measured: its kind, the name of its host, and the UUID of a GPU. Unknown parts are empty."""

    device_name: str
    host: str = ""
    uuid: str = ""

    @property
    def text(self) -> str:
        """The host and the short UUID.

        >>> Board("H200", "gpu-1", "GPU-8c1f2a90-1111-2222-3333-444455556666").text, Board("AMD EPYC", "node-7").text
        ('gpu-1 GPU-8c1f2a90', 'node-7')
        """
        kind, separator, digits = self.uuid.partition("-")
        return " ".join(filter(None, (self.host, f"{kind}{separator}{digits[:UUID_LETTERS]}")))


def boards_of(rounds: "pd.DataFrame") -> list[Board]:
    """Return the board of each row of a table of records."""
    known: dict[tuple[str, ...], Board] = {}
    rows = zip(*(rounds[name].tolist() for name in COLUMNS), strict=True)
    return [known.setdefault(row, Board(*row)) for row in rows]


def host_of_case(rounds: "pd.DataFrame") -> dict[str, str]:
    """Return case id -> the host that measured it."""
    names = zip(*(rounds[name].tolist() for name in ("workload", "case", "host")), strict=True)
    return {f"{workload}/{case}": host for workload, case, host in names}


def shared_rounds(base: Mapping[int, Board], other: Mapping[int, Board]) -> list[int]:
    """Return the rounds that both sides measured on the same board, given round -> board of each."""
    return sorted(number for number in base.keys() & other.keys() if base[number] == other[number])


def groups(boards: Sequence[Board], servers: Sequence[tuple[str, str]]) -> list[Hashable] | None:
    """Return for each round of a pair what it shares with the rounds that it is not independent of.

    Args:
        boards: the board of each round, (R,).
        servers: the pair of servers of each round, (R,); an empty name is not known.

    Returns:
        The board if several boards measured the pair: rounds on one board show the noise of that board, and only other
        boards show how boards differ. Else the pair of servers; None if not all are known.
    """
    if len(set(boards)) > 1:
        return list(boards)
    return list(servers) if all(map(all, servers)) else None


def kind_name(boards: Iterable[Board]) -> str:
    """Return the kind of some boards; ``A and B`` of several kinds, and empty for none."""
    return " and ".join(sorted({board.device_name for board in boards} - {""}))
