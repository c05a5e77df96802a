"""Faults of builds: package indexes, base images and locks that change."""

from tests.faults.fault import CLEAN, RESUME, Fault, Kept

BUILD = "Builds"
BUILD_FAULTS = (
    Fault(
        id="index-vanishes",
        group=BUILD,
        what="the package index vanishes",
        stage="in the middle of a download",
        exits=(1,),
        sees=("np-old: image-build: error: cannot make the venv", RESUME, "0 tests measured"),
        kept=Kept.MISSING,
        cleaned=f"{CLEAN}, and no half environment",
    ),
    Fault(
        id="index-error",
        group=BUILD,
        what="the package index answers with HTTP 500",
        exits=(1,),
        sees=("np-old: image-build: error: cannot make the venv", RESUME, "0 tests measured"),
        kept=Kept.MISSING,
        cleaned=f"{CLEAN}, and no half environment",
    ),
    Fault(
        id="index-other-file",
        group=BUILD,
        what="the package index has another file than the lock",
        exits=(1,),
        sees=("THESE PACKAGES DO NOT MATCH THE HASHES", "0 tests measured"),
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
