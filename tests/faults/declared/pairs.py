"""Several commands at once."""

from tests.faults.fault import Fault, Kept

PAIR = "Several commands at once"
PAIR_FAULTS = (
    Fault(
        id="two-runs",
        group=PAIR,
        what="two runs",
        exits=(0,),
        sees=("another runner measures on this machine: waiting for it",),
        kept=Kept.COMPLETE,
        smoke=True,
    ),
    Fault(
        id="two-resumes",
        group=PAIR,
        what="two `runner run --resume` of one run",
        exits=(2,),
        sees=("is in use by process ", "hint: wait until that process ends"),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="resume-beside-run",
        group=PAIR,
        what="`runner run --resume` beside the run",
        exits=(2,),
        sees=("is in use by process ",),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="run-beside-night",
        group=PAIR,
        what="a run beside a night",
        exits=(0,),
        sees=("another runner measures on this machine: waiting for it",),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="clean-beside-run",
        group=PAIR,
        what="`runner clean --all` beside a run",
        exits=(0,),
        sees=("another runner is using this cache: what it may need is kept",),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="report-beside-run",
        group=PAIR,
        what="`runner report` of a run that is measuring",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="two-builds",
        group=PAIR,
        what="two builds of one environment",
        exits=(0,),
        sees=("np-old: another runner makes this environment",),
        kept=Kept.NOTHING,
    ),
)
