"""The float64 references of cases: computed once, each in a new process, and kept on disk."""

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
    """The packed references of cases, cached on disk by the case and the code that computes them."""

    def __init__(self, folder: Path, threads: int, failed: dict[str, RunnerError] | None = None) -> None:
        """Keep references in ``folder`` and compute them with ``threads`` threads.

        ``failed`` holds the errors of references that cannot be computed, by key; they are not tried again.
        """
        self.failed = {} if failed is None else failed
        self.folder = folder
        self.threads = threads
        self.loaded: dict[str, dict[str, Any]] = {}

    def key(self, case: Mapping[str, Any]) -> str:
        """Return the key of a case in requests to servers."""
        return cases.key(dict(case))

    def known(self, case: Mapping[str, Any]) -> bool:
        """Return True if the reference of a case is on disk."""
        return self._path(self.key(case)).exists()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}-{code_hash()}.json"

    def get(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``loss``, packed ``gradients`` and ``digest`` of a case; compute them if they are not on disk.

        Raises:
            RunnerError: the reference cannot be computed.
        """
        key = self.key(case)
        if key in self.failed:
            raise self.failed[key]
        if key not in self.loaded:
            path = self._path(key)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, self._compute_once(key, case))
            self.loaded = {key: json.loads(path.read_bytes())}  # only the newest: they are large
        return self.loaded[key]

    def _compute_once(self, key: str, case: Mapping[str, Any]) -> bytes:
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
