"""The JSON Schema of ``matrix.yaml``, for editors and for the lint run."""

from typing import Any

from runner.matrix.models import Matrix


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a matrix file; a fresh dict each time."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Matrix.model_json_schema() | {"title": "matrix.yaml"}
