"""What an explanation has decided, see ``stored_search``: it continues from its runs and its locks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.core.bounds import STRICT, MetricName
from runner.search.stored_search import SearchStore, StoredSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainQuestion:
    """What is explained: two explanations with equal questions are the same.

    Attributes:
        cell: the test without its environment.
        good: the release without the change, as it was typed; ``bad`` with it.
        device: ``cpu``, or the UUIDs of the GPUs.
        backend: ``docker`` or ``venv``.
        metric: the name of the metric that changed.
        settings: what decides its times besides, see ``bisect.question.settings_of``.
    """

    __pydantic_config__ = STRICT

    cell: str
    good: str
    bad: str
    device: str
    backend: str
    metric: MetricName
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ExplainState(StoredSearch):
    """An explanation: its folder and question.

    Attributes:
        untried: environment of a candidate -> why it cannot be locked, built or measured.
    """

    __pydantic_config__ = STRICT

    question: ExplainQuestion
    untried: dict[str, str] = field(default_factory=dict)

    def save(self) -> None:
        """Replace the file; raises RecordError if it cannot be written."""
        EXPLANATIONS.save(self)


EXPLANATIONS = SearchStore("explain", ExplainState)
