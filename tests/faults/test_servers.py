"""Interpreters that speak the protocol as they like."""

import sys

import pytest

from tests.faults.bench import SMALL, Bench
from tests.faults.declared.servers import SERVER_FAULTS
from tests.faults.fault import Fault
from tests.support.executables import write_executable

SERVER = '''\
#!{python}
"""Answers the probe as an interpreter with NumPy, and requests as a hostile server."""
import json
import sys

MODE = {mode!r}
HELLO = {{"facts": {{"version": "2.4.6"}}, "bytes": 1, "python": "3.11.0", "packages": {{}}, "import_seconds": 0.1}}
GOOD = {{"seconds": [0.1, 0.1], "loss": [1.0, 1.0], "agrees": True}}
SOUND = {{"hello": HELLO, "measure": GOOD, "cold": {{"cold": {{}}}}}}
RAW = {{"garbage": b"\\xff\\xfe\\x00\\n", "nested": b"[" * 200000 + b"\\n"}}
ANSWERS = {{
    "import": ("hello", {{"status": "failed", "class": "import", "reason": "no module called numpy"}}),
    "no-status": ("hello", {{"facts": {{}}}}),
    "facts": ("hello", {{"status": "ok", "facts": 3}}),
    "size": ("hello", {{"status": "ok", **HELLO, "bytes": "x"}}),
    "seconds": ("measure", {{"status": "ok", **GOOD, "seconds": 5}}),
    "nan": ("measure", {{"status": "ok", **GOOD, "seconds": [float("nan")]}}),
    "compile": ("measure", {{"status": "ok", **GOOD, "compile_seconds": "x"}}),
    "escapes": ("measure", {{"status": "failed", "class": "crash", "reason": "\\x1b]0;owned\\x07\\x1b[2J"}}),
}}
if "harness" not in sys.argv[2]:
    print("numpy 2.4.6 3.11 numpy")
    sys.exit()
source, out = sys.stdin.buffer, sys.stdout.buffer
if MODE == "exits":
    sys.exit()
source.read(int(source.readline()))
if MODE == "dies":
    sys.exit(3)
for line in source:
    request = json.loads(line)
    if MODE in RAW:
        out.write(RAW[MODE])
        out.flush()
        continue
    if MODE == "measure-exits" and request["op"] == "measure":
        sys.exit(4)
    op, answer = ANSWERS.get(MODE, ("", {{}}))
    if op != request["op"]:
        answer = {{"status": "ok", **SOUND.get(request["op"], {{}})}}
    out.write(json.dumps({{**answer, "reply": "result", "id": request["id"], "settles": False}}).encode() + b"\\n")
    out.flush()
'''


@pytest.mark.parametrize("fault", SERVER_FAULTS, ids=lambda fault: fault.id)
def test_a_server(fault: Fault, bench: Bench) -> None:
    server = SERVER.format(python=sys.executable, mode=fault.id.removeprefix("server-"))
    python = write_executable(bench.folder / "python", server)
    done = bench("run", *SMALL, "--backend", "host", "--python", str(python))
    bench.check(done)
    assert "\x1b" not in done.stderr
    for command in ("report", "compare", "accuracy"):  # what is stored does not break what reads it later
        read = bench(command, *(("host", "host") if command == "compare" else ()))
        assert read.returncode in {0, 1, 2}, read.stderr
        assert "Traceback" not in read.stderr
