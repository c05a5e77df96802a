"""Ports of loopback for servers that are told their port and start later, or start again."""

import secrets
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_FIRST = 32768
FIRST = 10_000
"""Below it are the ports of well-known services."""


def free_port() -> int:
    """Return a port that nobody listens on, and that the kernel gives to no connection and to no ``bind`` of port 0.

    A port that ``bind`` has chosen may go to somebody else between the moment when it is closed and that when a server
    listens. A client that connects again and again to such a port of loopback may even get it as its own.
    """
    end = int(RANGE.read_text().split()[0]) if RANGE.exists() else USUAL_FIRST
    for _ in range(1000):
        port = FIRST + secrets.randbelow(end - FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError(f"no port between {FIRST} and {end} is free on loopback")
