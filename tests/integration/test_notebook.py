"""The documented examples as a notebook, executed by a kernel of Jupyter: what a cell prints and shows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import runner
from tests.support.quick_run import quick

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "analyse-in-python.md"
LAST_LINES = ("result", "run", "result.chart", "run.chart", "result.table.head()", "run.answer", "str(result)")
"""What a reader writes as the last line of a cell."""


def documented() -> list[str]:
    """Return the Python of the page, a cell for each block."""
    return [part.partition("\n```")[0] for part in PAGE.read_text("utf-8").split("```python\n")[1:]]


def executed(cells: Sequence[str], folder: Path) -> Any:
    """Return a notebook of cells with what a kernel in a folder made of them."""
    notebook = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": [
                {"id": f"cell-{number}", "cell_type": "code", "source": source, "metadata": {}}
                | {"outputs": [], "execution_count": None}
                for number, source in enumerate(cells)
            ],
        }
    )
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")})
    nbformat.write(notebook, folder / "notebook.ipynb")  # type: ignore[no-untyped-call]
    return notebook


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notebook")
    quick(path / "reports")
    return path


@pytest.fixture(scope="module")
def outputs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The outputs of each cell."""
    cells = executed([*documented(), *LAST_LINES], folder)["cells"]
    return {cell["source"]: cell["outputs"] for cell in cells}


def shown(outputs: dict[str, list[dict[str, Any]]], source: str) -> dict[str, str]:
    """Return what the only output of a cell shows, by its type."""
    (output,) = outputs[source]
    assert output["output_type"] == "execute_result"
    data: dict[str, str] = output["data"]
    return data


def test_print_prints_the_text_of_the_command_once(
    outputs: dict[str, list[dict[str, Any]]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    first, _table, run_cell, _charts = documented()
    (printed,) = outputs[first]
    assert (printed["output_type"], printed["name"]) == ("stream", "stdout")
    assert printed["text"] == f"{runner.compare('torch-1.0', 'torch-2.x')}\n"
    assert all(output["output_type"] == "stream" for output in outputs[run_cell])
    assert str(runner.load_run()) in "".join(output["text"] for output in outputs[run_cell])


@pytest.mark.parametrize("source", ["result", "run", "result.chart", "run.chart"])
def test_a_result_shows_its_chart(source: str, outputs: dict[str, list[dict[str, Any]]]) -> None:
    data = shown(outputs, source)
    assert data["image/svg+xml"].startswith("<svg")
    assert len(data["text/plain"].splitlines()) < 10


def test_a_frame_is_a_table_and_words_are_words(outputs: dict[str, list[dict[str, Any]]]) -> None:
    assert "<table" in shown(outputs, "result.table.head()")["text/html"]
    assert "x faster" in shown(outputs, "str(result)")["text/plain"]
    answer = shown(outputs, "run.answer")["text/plain"]
    assert "faster" in answer
    assert len(answer) < 1000
