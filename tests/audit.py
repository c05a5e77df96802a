"""Look for known vulnerabilities in the installed packages with pip-audit; pass where no advisory service answers.

pip-audit ends with 1 for a vulnerability, and for everything else that goes wrong. Only if it cannot connect to any of
its services is there nothing to say about the packages, and that alone passes, with a sentence.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

SERVICES = ("pypi", "osv")  # https://github.com/pypa/pip-audit, --vulnerability-service
COMMAND = (sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner=off", "--format=json")
# pip-audit words a connection that times out; all other failures to connect end it with the exception of requests.
UNREACHABLE = re.compile(
    r"^ERROR:pip_audit\._cli:Could not connect to .*vulnerability feed$"
    r"|^requests\.exceptions\.(?:ConnectionError|ConnectTimeout|ProxyError): .*\Z",
    re.MULTILINE,
)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command and return its exit status and output."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audit(options: Sequence[str], run: Run, write: Callable[[str], object]) -> int:
    """Ask the services in order until one answers; return the exit status.

    A service that knows none of the packages has not answered, either: an index without advisories does that.

    Args:
        options: further options of pip-audit.
        run: runs a command.
        write: takes the output.
    """
    for service in SERVICES:
        done = run([*COMMAND, "-s", service, *options])
        audited = audited_packages(done.stdout)
        if audited:
            lines = [f"{each['name']} {each['version']}: {vulnerability}\n" for each, vulnerability in _listed(audited)]
            write("".join(lines) + f"{len(audited)} packages audited with {service}, {len(lines)} vulnerabilities\n")
            return done.returncode
        if done.returncode != 0 and not UNREACHABLE.search(done.stderr.rstrip()):
            write(done.stdout + done.stderr)
            return done.returncode
    write(f"skipped: no advisory service answers ({', '.join(SERVICES)}); the dependencies were not audited\n")
    return 0


def audited_packages(output: str) -> list[dict[str, Any]]:
    """Return the packages that a service knows, from the JSON that pip-audit writes; none without JSON."""
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return []
    return [package for package in packages if "vulns" in package]


def _listed(audited: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Return each package with each of its vulnerabilities and the versions without it."""
    return [
        (package, f"{vulnerability['id']}, fixed in {', '.join(vulnerability['fix_versions']) or 'no version'}")
        for package in audited
        for vulnerability in package["vulns"]
    ]


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1:], run, sys.stdout.write))
