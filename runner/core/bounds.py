"""The types of stored values: what each number and text may be. Dataclasses that are stored are declared with them.

Such a dataclass is the value and the check in one: pydantic reads it strictly, see ``runner.store.shapes.value_of``.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

LARGEST = 2**53
"""The largest integer that is also a float; larger ones do not fit the columns of the tables."""

STRICT = ConfigDict(strict=True)
"""The ``__pydantic_config__`` of a stored dataclass: no value is converted, and newer programs' fields are ignored."""

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Seconds = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e100)]
Integer = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
RoundNumber = Annotated[int, Field(ge=0, le=10**9)]
CellId = Annotated[str, Field(min_length=1, max_length=4096)]
