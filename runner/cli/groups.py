"""The commands in groups, each with an example, as ``--help`` shows them."""

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start": ("doctor", "list", "new", "init", "wrap"),
    "Measure": ("plan", "build", "run", "bisect", "explain", "reproduce"),
    "Results": ("compare", "open", "check", "report", "history", "accuracy", "export", "import"),
    "Every night": ("nightly", "alerts", "schedule"),
    "Machine and matrix": ("tune", "clocks", "clean", "lock", "schema", "worker"),
}
"""Title -> its commands, in the order of ``--help``."""
EXAMPLES: Mapping[str, str] = {
    "accuracy": "runner accuracy",
    "alerts": "runner alerts --test",
    "bisect": "runner bisect nn-lstm/rnn-step/lstm-b32-h128/forward/fp32 --good torch==2.1.2 --bad torch==2.8.0",
    "build": "runner build torch-1.12 torch-2.x",
    "check": "runner check",
    "clean": "runner clean --dry-run",
    "clocks": "runner clocks show",
    "compare": "runner compare torch-1.12 torch-2.x --why",
    "doctor": "runner doctor",
    "explain": "runner explain jax==0.4.31 jax==0.4.33 my_network.py",
    "export": "runner export --output samples.parquet",
    "history": "runner history torch-2.x",
    "import": "runner import other-machine/reports/runs/20261125-193423-dd4e",
    "init": "runner init --model my_network.py",
    "list": "runner list environments",
    "lock": "runner lock torch-2.x",
    "new": "runner new my_network.py",
    "nightly": "runner nightly --preset quick",
    "open": "runner open",
    "plan": "runner plan --preset quick",
    "report": "runner report --site site",
    "reproduce": "runner reproduce 20261125-193423-dd4e/torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32",
    "run": "runner run torch-1.12 torch-2.x",
    "schedule": "runner schedule --at 02:30",
    "schema": "runner schema --output matrix.schema.json",
    "tune": "runner tune",
    "worker": "runner worker dask://head:8786",
    "wrap": "runner wrap torchvision:resnet18 --output resnet18.py",
}
"""Command -> a command line as people type it."""
