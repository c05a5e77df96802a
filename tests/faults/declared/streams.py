"""Faults of the streams of a command."""

from tests.faults.fault import Fault, Kept

STREAM = "Streams"
STREAM_FAULTS = (
    Fault(
        id="stderr-reader-gone",
        group=STREAM,
        what="the reader of stderr goes away, as in `runner run 2>&1 | head -1`",
        stage="while it measures",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="stdout-reader-gone",
        group=STREAM,
        what="the reader of stdout goes away",
        stage="while it measures",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="stdout-full",
        group=STREAM,
        what="stdout is full, as in `runner run > /dev/full`",
        exits=(1,),
        sees=("stdout cannot be written: No space left on device",),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="stdout-closed",
        group=STREAM,
        what="stdout is closed, as in `runner run >&-`",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="stderr-closed",
        group=STREAM,
        what="stderr is closed, as in `runner run 2>&-`",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="stdin-closed",
        group=STREAM,
        what="stdin is closed, as in `runner run <&-`",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="ascii",
        group=STREAM,
        what="the terminal takes ASCII alone",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
)
