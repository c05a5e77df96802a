"""The values that travel between the stages: frozen, complete, and unable to touch the machine.

Numbers are in seconds and bytes everywhere; scaling happens where text is made.
"""

from runner.model.cells import SKIP_CODES, Cell, Device, PlannedCell, Precision, Protocol, Skip, Verdict
from runner.model.environments import Provisioned, Spec, Survey
from runner.model.events import FAILURE_CLASSES, Canary, Event, Finished, Further, Grouped, Outcome, Record
from runner.model.machine import Gpu, Leftover, Limits, device_id, file_name
from runner.model.planning import Block, Corpus, Measurement, Past, Plan, Request

__all__ = [
    "FAILURE_CLASSES",
    "SKIP_CODES",
    "Block",
    "Canary",
    "Cell",
    "Corpus",
    "Device",
    "Event",
    "Finished",
    "Further",
    "Gpu",
    "Grouped",
    "Leftover",
    "Limits",
    "Measurement",
    "Outcome",
    "Past",
    "Plan",
    "PlannedCell",
    "Precision",
    "Protocol",
    "Provisioned",
    "Record",
    "Request",
    "Skip",
    "Spec",
    "Survey",
    "Verdict",
    "device_id",
    "file_name",
]
