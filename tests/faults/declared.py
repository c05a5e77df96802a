"""Every fault of the suite, by group. ``page`` makes docs/faults.md of it, and the tests hold the program to it."""

from tests.faults.fault import CLEAN, Fault, Kept, unique
from tests.faults.signals import OTHER_STAGES, STAGES, signals

RESUME = "`runner run --resume "
ENGINE = "Container engine"
DISK = "Disks and folders"
CLOCK = "Clock and memory"
CHILD = "What a framework does"
SERVER = "What a server answers"
BUILD = "Builds"
PAIR = "Several commands at once"
FOLDER = "Pieces of a run, damaged between run and resume"
STREAM = "Streams"

ENGINE_FAULTS = (
    Fault(
        id="engine-refuses",
        group=ENGINE,
        what="no engine answers",
        stage="at the start, with `--backend docker`",
        exits=(4,),
        sees=("no container engine answers", "hint: start it"),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="engine-absent-auto",
        group=ENGINE,
        what="no engine answers",
        stage="at the start, without `--backend`",
        exits=(0,),
        sees=("no container engine answers: using virtual environments",),
        kept=Kept.COMPLETE,
        smoke=True,
    ),
    Fault(
        id="engine-dies-measure",
        group=ENGINE,
        what="the engine is gone",
        stage="while it measures",
        exits=(4,),
        sees=("error: ", "hint: start the engine again, then " + RESUME),
        kept=Kept.RESUMABLE,
        smoke=True,
    ),
    Fault(
        id="engine-dies-server",
        group=ENGINE,
        what="the engine is gone",
        stage="while a server imports its framework",
        exits=(4,),
        sees=("error: ", "hint: start the engine again, then " + RESUME),
        kept=Kept.RESUMABLE,
    ),
    Fault(
        id="engine-dies-build",
        group=ENGINE,
        what="the engine is gone",
        stage="while it builds an image",
        exits=(4,),
        sees=("error: the container engine stopped answering",),
        kept=Kept.NOTHING,
        cleaned=f"{CLEAN}; an unfinished image goes with the next run",
    ),
    Fault(
        id="engine-restarts-measure",
        group=ENGINE,
        what="the engine drops all connections and answers again at once",
        stage="while it measures",
        exits=(0,),
        kept=Kept.OTHERS,
    ),
    Fault(
        id="engine-stalls-measure",
        group=ENGINE,
        what="the engine stalls for 5 s",
        stage="while it measures",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="engine-slow",
        group=ENGINE,
        what="each answer of the engine takes 50 ms more",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="engine-error-start",
        group=ENGINE,
        what="the engine answers every request with HTTP 500",
        stage="at the start",
        exits=(4,),
        sees=("no container engine answers", "the disk of the engine is broken"),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="engine-error-create",
        group=ENGINE,
        what="the engine answers with HTTP 500 that it cannot make a container",
        stage="when a server starts",
        exits=(1,),
        sees=("the disk of the engine is broken", "0 cells measured"),
        kept=Kept.FAILED,
    ),
    Fault(
        id="engine-container-killed",
        group=ENGINE,
        what="`docker kill` of a server's container",
        stage="while it measures",
        exits=(0,),
        sees=(": crash: the harness server's container ended with exit 137",),
        kept=Kept.OTHERS,
    ),
)

NO_SPACE = "No space left on device"
DISK_FAULTS = (
    Fault(
        id="disk-full-folder",
        group=DISK,
        what="the disk of the reports is full",
        stage="while it makes the run folder",
        exits=(2, 6),
        sees=(NO_SPACE,),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="inodes-full-folder",
        group=DISK,
        what="the disk of the reports has no inodes left",
        stage="while it makes the run folder",
        exits=(2, 6),
        sees=(NO_SPACE,),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="disk-full-measure",
        group=DISK,
        what="the disk of the reports is full",
        stage="while it measures",
        exits=(6,),
        sees=("cannot be written: " + NO_SPACE, "hint: make room, then " + RESUME),
        kept=Kept.RESUMABLE,
        smoke=True,
    ),
    Fault(
        id="inodes-full-measure",
        group=DISK,
        what="the disk of the reports has no inodes left",
        stage="while it measures",
        exits=(6,),
        sees=("cannot be written: " + NO_SPACE, "hint: make room, then " + RESUME),
        kept=Kept.RESUMABLE,
    ),
    Fault(
        id="disk-full-report",
        group=DISK,
        what="the disk of the reports is full",
        stage="while it writes the report",
        exits=(6,),
        sees=(NO_SPACE,),
        kept=Kept.PAGE,
    ),
    Fault(
        id="disk-full-cache",
        group=DISK,
        what="the disk of the cache is full",
        stage="while it stores a reference",
        exits=(1,),
        sees=("references", NO_SPACE),
        kept=Kept.RESUMABLE,
    ),
    Fault(
        id="disk-full-venv",
        group=DISK,
        what="the disk of the cache has 4 MB",
        stage="before it builds a virtual environment",
        exits=(1,),
        sees=("not enough disk space for np-old", "hint: select fewer environments, or free disk space"),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="disk-full-pip",
        group=DISK,
        what="the disk of the cache is full",
        stage="while pip installs into a virtual environment",
        exits=(1,),
        sees=("np-old: image-build", NO_SPACE),
        kept=Kept.FAILED,
    ),
    Fault(
        id="disk-full-image",
        group=DISK,
        what="a step of an image build finds its disk full",
        stage="while it builds an image",
        exits=(1,),
        sees=("np-old: image-build", NO_SPACE),
        kept=Kept.FAILED,
    ),
    Fault(
        id="disk-full-tmp",
        group=DISK,
        what="the disk of `TMPDIR` is full: `/tmp` is taken instead",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="readonly-reports",
        group=DISK,
        what="the reports folder is read-only",
        stage="at the start",
        exits=(2,),
        sees=("reports/runs cannot be written: Read-only", "hint: choose another folder with --reports"),
        kept=Kept.NOTHING,
        smoke=True,
    ),
    Fault(
        id="foreign-reports",
        group=DISK,
        what="the reports folder belongs to another user",
        stage="at the start",
        exits=(2,),
        sees=("path 'reports' is not readable",),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="foreign-cache",
        group=DISK,
        what="the cache folder belongs to another user",
        stage="at the start",
        exits=(1,),
        sees=("cannot create the lock ", "Permission denied", "hint: set XDG_CACHE_HOME"),
        kept=Kept.NOTHING,
    ),
    Fault(
        id="foreign-run",
        group=DISK,
        what="the run folder belongs to another user",
        stage="when it is resumed",
        exits=(2, 6),
        sees=("Permission denied",),
        kept=Kept.UNCHANGED,
    ),
    Fault(
        id="run-folder-removed",
        group=DISK,
        what="the run folder is removed",
        stage="while it measures",
        exits=(6,),
        sees=("cannot be written: No such file or directory",),
        kept=Kept.NOTHING,
    ),
)

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
        sees=("0 cells measured",),
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


def _child(name: str, what: str, **options: object) -> Fault:
    """Return a fault of what a framework does in its first measurement."""
    facts = {"exits": (1,), "kept": Kept.OTHERS, "stage": "in one measurement", **options}
    return Fault(id=f"child-{name}", group=CHILD, what=what, **facts)  # type: ignore[arg-type]


CHILD_FAULTS = (
    _child("segv", "it crashes with SIGSEGV", exits=(0,), sees=(": crash: killed by signal SIGSEGV",), smoke=True),
    _child("exit", "it ends its process with code 3", exits=(0,), sees=(": crash: exit 3 without a result",)),
    _child("exit-0", "it ends its process with code 0", exits=(0,), sees=(": crash: exit 0 without a result",)),
    _child("kill", "it is killed", exits=(0,), sees=(": crash: killed by signal SIGKILL",)),
    _child("stop", "it stops itself with SIGSTOP", sees=(": timeout: not finished after 5 s",)),
    _child("deaf", "it sleeps and ignores every signal", sees=(": timeout: not finished after 5 s",)),
    _child(
        "raise", "it raises an error of 5 MB with control characters", exits=(0,), sees=(": crash: RuntimeError: ",)
    ),
    _child(
        "kill-server", "it kills the server", exits=(0,), sees=(": crash: the harness server was killed by SIGKILL",)
    ),
    _child("print", "it prints 20 MB to stdout and to stderr", exits=(0,), kept=Kept.COMPLETE),
    _child("fork", "it starts 50 processes that sleep", exits=(0,), kept=Kept.COMPLETE),
    _child("setsid", "it starts a process that leaves its session", exits=(0,), kept=Kept.COMPLETE),
    _child("files", "it leaves 20 MB of temporary files", exits=(0,), kept=Kept.COMPLETE),
    _child("close", "it closes all descriptors", exits=(0,), sees=(": crash: exit 1 without a result",)),
)


def _server(name: str, what: str, *sees: str) -> Fault:
    """Return a fault of what a server answers; its environment fails, whatever it is."""
    exits, kept = (1,), Kept.FAILED
    return Fault(id=f"server-{name}", group=SERVER, what=what, exits=exits, kept=kept, sees=(*sees, "0 cells measured"))


SERVER_FAULTS = (
    _server("exits", "it ends before it reads", ": import: "),
    _server("dies", "it ends after it has read", ": import: "),
    _server("garbage", "it answers with bytes that are no text", ": import: "),
    _server("nested", "it answers with 200,000 opening brackets", ": import: "),
    _server("import", "it cannot import its framework", ": import: no module called numpy"),
    _server("no-status", "its answer has no status", ": "),
    _server("facts", "its facts are a number", ": "),
    _server("size", "its size is a text", ": "),
    _server("seconds", "its times are a number", ": "),
    _server("nan", "its times are NaN", ": "),
    _server("compile", "its compile time is a text", ": "),
    _server("measure-exits", "it ends in each measurement", ": crash: "),
    _server("escapes", "its reason has escape sequences of a terminal", ": crash: "),
)

BUILD_FAULTS = (
    Fault(
        id="index-vanishes",
        group=BUILD,
        what="the package index vanishes",
        stage="in the middle of a download",
        exits=(1,),
        sees=("np-old: image-build: error: cannot make the venv", "0 cells measured"),
        kept=Kept.FAILED,
        cleaned=f"{CLEAN}, and no half environment",
        smoke=True,
    ),
    Fault(
        id="index-error",
        group=BUILD,
        what="the package index answers with HTTP 500",
        exits=(1,),
        sees=("np-old: image-build: error: cannot make the venv", "0 cells measured"),
        kept=Kept.FAILED,
        cleaned=f"{CLEAN}, and no half environment",
    ),
    Fault(
        id="index-other-file",
        group=BUILD,
        what="the package index has another file than the lock",
        exits=(1,),
        sees=("THESE PACKAGES DO NOT MATCH THE HASHES", "0 cells measured"),
        kept=Kept.FAILED,
        cleaned=f"{CLEAN}, and no half environment",
    ),
    Fault(
        id="base-changed-build",
        group=BUILD,
        what="the base image changes under its tag",
        stage="between plan and build",
        exits=(0,),
        kept=Kept.COMPLETE,
    ),
    Fault(
        id="base-changed-resume",
        group=BUILD,
        what="the base image changes under its tag",
        stage="between run and resume",
        exits=(2,),
        sees=("has changed since the run started", "hint: restore it, or start a new run"),
        kept=Kept.UNCHANGED,
    ),
    Fault(
        id="lock-changed-resume",
        group=BUILD,
        what="the lock of an environment changes",
        stage="between run and resume",
        exits=(2,),
        sees=("has changed since the run started", "hint: restore it, or start a new run"),
        kept=Kept.UNCHANGED,
    ),
    Fault(
        id="build-killed-then-run",
        group=BUILD,
        what="`runner build` is killed, and run again",
        exits=(0,),
        kept=Kept.COMPLETE,
        cleaned=f"{CLEAN}, and no half environment",
    ),
)

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


def _piece(name: str, what: str, exits: tuple[int, ...], kept: Kept, *sees: str) -> Fault:
    """Return a fault of a run folder that is damaged between run and resume."""
    return Fault(id=f"piece-{name}", group=FOLDER, what=what, exits=exits, kept=kept, sees=sees)


FOLDER_FAULTS = (
    _piece("plan-removed", "`plan.json` is removed", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("plan-cut", "`plan.json` is cut in half", (6,), Kept.UNCHANGED, "plan.json"),
    _piece("journal-cut", "the last line of the journal is cut", (0,), Kept.COMPLETE, "the last line was cut off"),
    _piece("journal-removed", "the journal is removed", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("journal-empty", "the journal is empty", (3,), Kept.UNCHANGED, "is unfinished"),
    _piece("journal-garbage", "a line in the journal's middle is garbage", (0,), Kept.COMPLETE, "journal.jsonl:2"),
    _piece("journal-doubled", "a line of the journal is there twice", (0,), Kept.COMPLETE, "resuming run "),
    _piece("record-removed", "a record is removed", (0,), Kept.COMPLETE, "1 record is damaged and left out"),
    _piece("record-cut", "a record is cut in half", (0,), Kept.COMPLETE, "1 record is damaged and left out"),
    _piece("cases-removed", "`cases.json` is removed", (6,), Kept.UNCHANGED, "cases.json"),
    _piece("environments-removed", "`environments.json` is removed", (6,), Kept.UNCHANGED, "environments.json"),
    _piece("records-file", "the folder of the records is a file", (6,), Kept.UNCHANGED, "records"),
    _piece("lock-folder", "`.lock` is a folder", (2, 6), Kept.UNCHANGED, ".lock"),
    _piece("newer", "a newer program wrote the plan", (6,), Kept.UNCHANGED, "plan.json"),
)

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

FAULTS = unique(
    (
        *signals(STAGES),
        *signals(OTHER_STAGES),
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
