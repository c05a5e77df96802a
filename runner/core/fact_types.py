"""The types of the facts in records, see ``core.facts``."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from runner.core.bounds import Count, Integer, Number, Positive, open_dict
from runner.core.facts import FACTS, Fact, FactType

STORED: Mapping[FactType, Any] = {
    "amount": Number,  # a count that statistics take as a number
    "check": dict[str, str | bool | dict[str, Number | None]],
    "clocks": Number | Annotated[list[Number], Field(min_length=1)] | dict[str, Number],  # the last two: older programs
    "count": Count | bool,  # older programs had a flag
    "errors": dict[str, Number | None],
    "flag": bool,
    "integers": list[Integer],
    "label": str,  # a name that the runner adds to a reply
    "number": Number,
    "positive": Positive,
    "samples": list[Number | None],
    "seconds": Number,
    "server": Annotated[str, Field(pattern=r"^[^#]*(#[0-9]{1,9})?$")],
    "text": str,
    "texts": list[str],
}
"""Type of a fact -> its values in a record, where each may be null as well; without ``any``."""


def typed_facts(facts: Iterable[Fact] = FACTS) -> dict[str, Any]:
    """Return name -> type of the facts in a record that have one."""
    return {fact.name: STORED[fact.type] | None for fact in facts if fact.type != "any"}


TYPED_FACTS = frozenset(typed_facts())
FACTS_SHAPE = open_dict("Facts", typed_facts())
"""The shape of the facts in a record; those of frameworks may have any value."""
