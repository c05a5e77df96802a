"""The documents of a run that stay JSON objects, because each fact in them is shown: what their fields may hold."""

from collections.abc import Mapping
from typing import Any, Literal, Required

from pydantic import TypeAdapter

from runner.core.bounds import CellId, Count, Integer, Number, RoundNumber, Seconds, open_dict

Text = str | None

PLAN_CELL = open_dict(
    "PlanCell",
    {
        "id": Required[CellId],
        "verdict": Required[Literal["run", "skip"]],
        **dict.fromkeys(("environment", "implementation", "workload", "case", "phase", "precision"), str),
        **dict.fromkeys(("framework", "kind", "device", "code", "reason", "source", "jit", "deferred"), Text),
        "nearest": list[str] | None,
        **dict.fromkeys(("seconds", "control_seconds"), Number),
    },
)
PLAN = {
    "device": Text,
    "backend": Text,
    "rounds": RoundNumber,
    "max_rounds": RoundNumber,
    "budget": Number | None,
    "seconds": Seconds,
    "threads": Count,
    "seed": Integer,
    "cells": Required[list[PLAN_CELL]],  # type: ignore[valid-type]
}
MACHINE = {
    **dict.fromkeys(("host", "kernel", "cpu", "governor", "huge_pages"), Text),
    **dict.fromkeys(("cores", "logical_cores", "online_cpus", "memory_bytes"), Count | None),
    "load_average": list[Number] | None,
    "gpu": open_dict("MachineGpu", {"uuid": Required[str], "name": Required[str], "driver": Required[Text]}) | None,
    "gpus": list[dict[str, Any]],
}
ENVIRONMENT = open_dict(
    "EnvironmentFacts",
    {**dict.fromkeys(("framework", "release", "version", "digest"), Text), "packages": dict[str, Text] | None},
)

DOCUMENTS: Mapping[str, TypeAdapter[Any]] = {
    "plan.json": TypeAdapter(open_dict("PlanFile", PLAN)),
    "cases.json": TypeAdapter(open_dict("CasesFile", {"cases": Required[dict[str, dict[str, Any]]]})),
    "machine.json": TypeAdapter(open_dict("MachineFile", MACHINE)),
    "environments.json": TypeAdapter(open_dict("EnvironmentsFile", {"environments": Required[dict[str, ENVIRONMENT]]})),  # type: ignore[valid-type]
}
