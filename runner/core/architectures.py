"""The architectures that environments are built for, by the names that the kernel, wheels and uv use."""

import platform
from typing import Literal

Architecture = Literal["x86_64", "aarch64"]
USUAL: Architecture = "x86_64"
"""What the entries of a matrix are for where they say nothing else."""


def architecture_of(machine: str) -> Architecture:
    """Return the architecture of a machine by the name that its kernel or its container engine has for it.

    A machine of any other architecture counts as ``USUAL``.

    >>> architecture_of("arm64"), architecture_of("aarch64"), architecture_of("x86_64"), architecture_of("amd64")
    ('aarch64', 'aarch64', 'x86_64', 'x86_64')
    """
    return "aarch64" if machine.lower() in {"aarch64", "arm64"} else USUAL


def this_architecture() -> Architecture:
    """Return the architecture of this machine."""
    return architecture_of(platform.machine())
