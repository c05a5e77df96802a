"""Measures networks in containers for one short round: what its records say of their results."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ENGINE = ("--backend", "docker", "--device", "cpu", "--threads", "1", "--busy-ok")
"""With one thread: those of a network wait for each other, and other tests have the second CPU."""
LENGTHS = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.02")


def records_of(folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Return cell -> record. Some cells may fail; ``words`` are arguments of ``runner run``. There are no controls.

    Files of examples/ are copied beside a copy of the matrix, which may list them.
    """
    for name in ("docker", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    matrix = folder / "matrix.yaml"
    matrix.write_text((ROOT / "matrix.yaml").read_text("utf-8") + "\nmeasure: {controls: false}\n", "utf-8")
    copied = [word.replace(str(ROOT / "examples"), str(folder / "examples")) for word in words]
    command = [sys.executable, "-m", "runner", "run", *copied, *ENGINE, *LENGTHS, "--matrix", str(matrix)]
    command += ["--reports", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    loaded = (json.loads(path.read_text()) for path in folder.glob("runs/*/records/*.json"))
    return {record["cell"]: record for record in loaded}
