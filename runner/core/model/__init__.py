"""The values that travel between the stages: frozen, complete, and unable to touch the machine.

Numbers are in seconds and bytes everywhere; scaling happens where text is made.
"""

from runner.core.model.cells import (
    SKIP_CODES,
    SKIP_MEANINGS,
    Cell,
    Device,
    Phase,
    PlannedCell,
    Precision,
    Process,
    Protocol,
    Skip,
    Verdict,
)
from runner.core.model.devices import Gpu, Leftover, Limits, device_id, file_name
from runner.core.model.events import (
    FAILURE_CLASSES,
    Canary,
    CaseFinished,
    CaseSkipped,
    Event,
    ExtraRound,
    GroupsFormed,
    Outcome,
    ProfileTaken,
    Record,
    RoundDisturbed,
    RoundTimes,
)
from runner.core.model.model_files import ModelFiles
from runner.core.model.plans import Block, Corpus, Measurement, Past, Plan, Request, Round, Signs
from runner.core.model.provisioning import Provisioned, Spec, Survey

__all__ = [
    "FAILURE_CLASSES",
    "SKIP_CODES",
    "SKIP_MEANINGS",
    "Block",
    "Canary",
    "CaseFinished",
    "CaseSkipped",
    "Cell",
    "Corpus",
    "Device",
    "Event",
    "ExtraRound",
    "Gpu",
    "GroupsFormed",
    "Leftover",
    "Limits",
    "Measurement",
    "ModelFiles",
    "Outcome",
    "Past",
    "Phase",
    "Plan",
    "PlannedCell",
    "Precision",
    "Process",
    "ProfileTaken",
    "Protocol",
    "Provisioned",
    "Record",
    "Request",
    "Round",
    "RoundDisturbed",
    "RoundTimes",
    "Signs",
    "Skip",
    "Spec",
    "Survey",
    "Verdict",
    "device_id",
    "file_name",
]
