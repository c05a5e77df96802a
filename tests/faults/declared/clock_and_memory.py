"""Faults of the clock, and of memory."""

from tests.faults.fault import Fault, Kept

CLOCK = "Clock and memory"
CLOCK_FAULTS = (
    Fault(
        id="clock-back-measure",
        group=CLOCK,
        what="the clock is set back by a day",
        stage="while it measures",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="clock-forward-measure",
        group=CLOCK,
        what="the clock is set forward by a year",
        stage="while it measures",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="clock-back-resume",
        group=CLOCK,
        what="the clock is set back by three years",
        stage="between run and resume",
        exits=(0,),
        sees=("resuming run ",),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="clock-1970",
        group=CLOCK,
        what="the clock stands at 1970",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="memory-server",
        group=CLOCK,
        what="a server gets too little memory to import its framework",
        stage="while it starts",
        exits=(1,),
        sees=("0 tests measured",),
        kept=Kept.FAILED,
    ),
    Fault(
        id="memory-pressure",
        group=CLOCK,
        what="the kernel kills a measurement because memory is short",
        stage="while it measures",
        exits=(0,),
        sees=(": crash: killed by signal SIGKILL",),
        kept=Kept.OTHERS,
    ),
)
