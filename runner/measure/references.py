"""The float64 references of cases: computed once, in a process of their own, and kept on disk."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.backends import harness_archive
from runner.core.errors import Problem, RunnerError
from runner.core.files import write_whole
from runner.harness import cases


class References:
    """Gives the packed reference of a case; a cache on disk is keyed by the case and the code that computes it."""

    def __init__(self, folder: Path, threads: int, failed: dict[str, RunnerError] | None = None) -> None:
        """Keep references under ``folder`` and compute with ``threads`` threads.

        ``failed`` has those that cannot be computed, by key: none of them is tried again, and more are added.
        """
        self.failed = {} if failed is None else failed
        self.folder = folder
        self.threads = threads
        self.loaded: dict[str, dict[str, Any]] = {}

    def key(self, case: Mapping[str, Any]) -> str:
        """Return the name under which servers know the case."""
        return cases.key(dict(case))

    def known(self, case: Mapping[str, Any]) -> bool:
        """Say whether nothing has to be computed for a case."""
        return self._path(self.key(case)).exists()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}-{code_hash()}.json"

    def get(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``loss``, packed ``gradients`` and ``digest`` of a case, computing them where they are not kept."""
        key = self.key(case)
        if key in self.failed:
            raise self.failed[key]
        if key not in self.loaded:
            path = self._path(key)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, self._computed(key, case))
            self.loaded = {key: json.loads(path.read_bytes())}  # one at a time: they are large
        return self.loaded[key]

    def _computed(self, key: str, case: Mapping[str, Any]) -> bytes:
        try:
            return self._compute(case)
        except RunnerError as error:
            self.failed[key] = error
            raise

    def _compute(self, case: Mapping[str, Any]) -> bytes:
        environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(self.threads), OMP_NUM_THREADS=str(self.threads))
        command = [sys.executable, "-P", "-m", "runner.harness.verify", json.dumps(dict(case))]
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise RunnerError(Problem(f"the reference of {case['name']!r} could not be computed: {' '.join(last)}"))
        return done.stdout


def code_hash() -> str:
    """Return 8 digits that change when the code behind the references does."""
    verify = (
        harness_archive.FOLDER / "verify" / f"{name}.py" for name in ("__main__", "reference", "layers", "losses")
    )
    return harness_archive.code_hash((*verify, *sorted((harness_archive.FOLDER / "cases").glob("*.py"))))[:8]
