"""What a session was asked for, and how it asks the runner for the same."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runner.session.options import Options

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "matrix.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a session.

    Attributes:
        folder: where everything is written.
        scratch: a folder for runs that are killed; removed at the end.
        backend: of the runner: auto, docker, venv or host.
        python: the interpreter that ``--backend host`` measures.
        selectors: the environments to measure; empty for all.
        pin: whether clocks may be held.
        standin: no GPU is here: the driver is the stand-in of the tests, and everything computes on the CPU.
        small: the smallest sizes and counts, for a test of this command.
        limit: seconds that the check has which reads these settings.
    """

    folder: Path
    scratch: Path
    backend: str = "auto"
    python: str | None = None
    selectors: tuple[str, ...] = ()
    pin: bool = True
    standin: bool = False
    small: bool = False
    limit: float = 0.0

    @property
    def device(self) -> str:
        """Where frameworks compute."""
        return "cpu" if self.standin else "cuda"

    def options(self, **changes: Any) -> Options:  # noqa: ANN401  each field has its own type
        """Return the options of a plan or a run for this session."""
        options = Options(
            selectors=list(self.selectors) or None,
            matrix=MATRIX,
            device=self.device,
            backend=self.backend,
            python=self.python if self.backend == "host" else None,
            pin=None if self.pin else False,
            threads="1" if self.small else None,
        )
        return replace(options, **changes)

    def command(self, name: str, options: Options | None = None, *words: str) -> list[str]:
        """Return the command line of ``runner`` with options."""
        return [sys.executable, "-m", "runner", name, *(options.to_argv() if options else ()), *words]

    def text(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(
            {key: str(value) if isinstance(value, Path) else value for key, value in asdict(self).items()}
        )

    @classmethod
    def read(cls, text: str) -> "Settings":
        """Return the settings of a JSON text."""
        values: Mapping[str, Any] = json.loads(text)
        paths = {name: Path(values[name]) for name in ("folder", "scratch")}
        return cls(**{**values, **paths, "selectors": tuple(values["selectors"])})
