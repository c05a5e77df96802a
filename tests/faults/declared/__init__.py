"""Every fault of the suite, by group. ``page`` makes docs/faults.md of it, and the tests hold the program to it."""

from tests.faults.declared.builds import BUILD_FAULTS
from tests.faults.declared.children import CHILD_FAULTS
from tests.faults.declared.clock_and_memory import CLOCK_FAULTS
from tests.faults.declared.commands import command_faults
from tests.faults.declared.disks import DISK_FAULTS
from tests.faults.declared.engine import ENGINE_FAULTS
from tests.faults.declared.pairs import PAIR_FAULTS
from tests.faults.declared.pieces import FOLDER_FAULTS
from tests.faults.declared.servers import SERVER_FAULTS
from tests.faults.declared.streams import STREAM_FAULTS
from tests.faults.fault import unique
from tests.faults.signals import OTHER_STAGES, STAGES, signals

FAULTS = unique(
    (
        *signals(STAGES),
        *signals(OTHER_STAGES),
        *command_faults(),
        *ENGINE_FAULTS,
        *DISK_FAULTS,
        *CLOCK_FAULTS,
        *CHILD_FAULTS,
        *SERVER_FAULTS,
        *BUILD_FAULTS,
        *PAIR_FAULTS,
        *FOLDER_FAULTS,
        *STREAM_FAULTS,
    )
)
