"""Scripts that a test writes and starts at once."""

import subprocess
from pathlib import Path

WRITE = 'cat > "$0.new" && chmod 755 "$0.new" && mv "$0.new" "$0"'


def write_executable(path: Path, text: str) -> Path:
    """Write a script that may be started, by a process of its own.

    A file that this process holds open for writing is inherited by whatever another thread forks meanwhile. Until that
    child has run its own program, Linux refuses to start the file (``ETXTBSY``, "Text file busy", ``execve(2)``).
    """
    subprocess.run(["/bin/sh", "-c", WRITE, str(path)], input=text, text=True, check=True, timeout=30)
    return path
