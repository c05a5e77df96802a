"""The address of a partition of Slurm: ``PARTITION?devices=4&gres=gpu:1``."""

import re
import shutil
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from runner.core.errors import Problem, UsageError

OPTIONS = ("devices", "device", "gres", "time", "account", "qos", "constraint", "cpus-per-task")
"""What an address may set: ``devices`` and ``device`` are the runner's, the others are options of ``sbatch``."""


@dataclass(frozen=True, slots=True)
class Address:
    """A partition, and what jobs ask it for.

    Attributes:
        devices: how many jobs wait or run at the same time.
        device: what each of them measures on: ``cuda`` or ``cpu``.
        options: of ``sbatch``.
    """

    devices: int
    device: str
    options: tuple[str, ...]


def read_address(rest: str) -> Address:
    """Return the address that a user wrote, without its scheme.

    Raises:
        UsageError: it is wrong, or there is no Slurm.
    """
    parts = urlsplit(f"//{rest}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    count = options.pop("devices", "1")
    partition = f"{parts.netloc}{parts.path}"
    good = re.fullmatch(r"[\w.-]+", partition) and re.fullmatch("[1-9][0-9]*", count)
    if not good or set(options) - set(OPTIONS) or "" in options.values():
        hint = f"write slurm://PARTITION?devices=4&gres=gpu:1; its options are {', '.join(OPTIONS)}"
        raise UsageError(Problem(f"slurm://{rest} is not an address", hint=hint))
    if shutil.which("sbatch") is None:
        hint = "start the run on a host that can submit jobs, or load its module of Slurm"
        raise UsageError(Problem("there is no command sbatch", hint=hint))
    device = options.pop("device", "cuda" if "gres" in options else "cpu")
    values = (f"--{name}={value}" for name, value in sorted(options.items()))
    return Address(int(count), device, (f"--partition={partition}", *values))
