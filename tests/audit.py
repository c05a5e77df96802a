"""Look for known vulnerabilities in the installed packages with pip-audit; pass where no advisory service answers.

pip-audit ends with 1 for a vulnerability, and for everything else that goes wrong. Only if it could not connect to any
of its services is there nothing to say about the packages, and that alone passes, with a sentence.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence

SERVICES = ("pypi", "osv")  # https://github.com/pypa/pip-audit, --vulnerability-service
COMMAND = (sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off", "-s")
UNREACHABLE = re.compile(r"^ERROR:pip_audit\._cli:Could not connect to .*vulnerability feed", re.MULTILINE)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command and return its exit status and output."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audit(options: Sequence[str], run: Run, write: Callable[[str], object]) -> int:
    """Ask the services in order until one answers; return the exit status.

    Args:
        options: further options of pip-audit.
        run: runs a command.
        write: takes the output.
    """
    for service in SERVICES:
        done = run([*COMMAND, service, *options])
        if done.returncode == 0 or not UNREACHABLE.search(done.stderr):
            write(done.stdout + done.stderr)
            return done.returncode
    write(f"skipped: no advisory service answers ({', '.join(SERVICES)}); the dependencies were not audited\n")
    return 0


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1:], run, sys.stdout.write))
