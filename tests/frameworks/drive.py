"""A tiny host for a harness server: packs the harness, starts an interpreter, speaks the protocol. For tests alone."""

import io
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.catalog.cases import CASES
from runner.catalog.cases.recurrent import case
from runner.harness import adapters, cases, protocol
from runner.harness.verify import __main__

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = """
import os, struct, sys, tempfile
source = sys.stdin.buffer
path = os.path.join(tempfile.mkdtemp(prefix="harness-"), "harness.zip")
with open(path, "wb") as handle:
    handle.write(source.read(struct.unpack(">Q", source.read(8))[0]))
sys.path.insert(0, path)
from harness import server
server.main(source)
"""


def archive(more: Mapping[str, str]) -> bytes:
    """Return the harness as a zip, its length in front; ``more`` is text to add to the end of some of its files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for path in sorted((ROOT / "runner" / "harness").rglob("*.py")):
            name = str(path.relative_to(ROOT / "runner"))
            target.writestr(name, path.read_text("utf-8") + more.get(name, ""))
    return len(packed.getvalue()).to_bytes(8, "big") + packed.getvalue()


class Client:
    """One live server."""

    def __init__(self, process: "subprocess.Popen[bytes]", framework: str, cache: str) -> None:
        """Talk to ``process``; compilers keep their files under ``cache``."""
        self.process = process
        self.framework = framework
        self.cache = cache
        self.count = 0
        self.known: set[str] = set()

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send one request and return its result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.count += 1
        self.process.stdin.write(protocol.encode({"op": op, "id": self.count, **fields}))
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            assert line, f"the server ended with {self.process.wait()}"
            message: dict[str, Any] = protocol.decode(line)
            if message["reply"] == "result":
                assert message["id"] == self.count
                return message

    def hello(self, threads: int = 2, device: str = "cpu") -> dict[str, Any]:
        """Have the framework imported."""
        return self.ask("hello", framework=self.framework, threads=threads, device=device, timeout=120)

    def measure(self, slug: str, case: dict[str, Any], phase: str = "train", **options: Any) -> dict[str, Any]:
        """Measure one cell, after sending the case's reference the first time."""
        key = cases.key(case)
        if key not in self.known:
            self.ask("reference", key=key, **__main__.main(case))
            self.known = {key}  # a server keeps the newest alone
        fields = {"device": "cpu", "precision": "fp32", "seconds": 0.05, "timeout": 300, "memory": None, **options}
        fields.update(key=key, framework=self.framework, implementation=slug, case=case, phase=phase, cache=self.cache)
        return self.ask("measure", **fields)


def assert_close(name: object, loss: float, gradient: float, forward: float) -> None:
    """Hold a right result to far less than the product's tolerances (1e-5 and 1e-3).

    Four times the worst that was seen: processors sum in orders of their own, and what one has at 1.9e-6 another has
    at 2.03e-6.
    """
    assert (name, loss) < (name, 4e-6)
    assert (name, gradient) < (name, 2e-5)
    assert (name, forward) < (name, 4e-6)


def able(framework: str, release: tuple[float, ...], case: Mapping[str, Any], precision: str = "fp32") -> list[str]:
    """Return the slugs that a release has for a case on a CPU."""
    concerned = [chosen for chosen in adapters.implementations(framework) if chosen.concerns(dict(case))]
    return [chosen.slug for chosen in concerned if chosen.lacks(dict(case), release, "cpu", precision) is None]


@contextmanager
def server(
    python: Path, framework: str, env: dict[str, str] | None = None, more: Mapping[str, str] | None = None
) -> Iterator[Client]:
    """Run a harness server under ``python`` for the length of the block; nothing is left behind. See ``archive``."""
    folder = tempfile.mkdtemp(prefix="drive-")
    environ = {**os.environ, "TMPDIR": folder, **(env or {})}
    command = [str(python), "-c", BOOTSTRAP]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
            assert process.stdin is not None
            process.stdin.write(archive(more or {}))
            process.stdin.flush()
            try:
                yield Client(process, framework, str(Path(folder) / "cache"))
            finally:
                process.stdin.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def small(cell: str, loss: str, **changes: Any) -> dict[str, Any]:
    """Return a case of a few numbers: ``mse`` with SGD as rnn-step has it, ``ce`` with Adam as asr-lstm has it."""
    sizes: dict[str, Any] = {
        "name": "small",
        "steps": 10,
        "batch": 4,
        "hidden": 8,
        "seed": 7,
        "cell": cell,
        "loss": loss,
    }
    if loss == "mse":
        sizes.update(workload="rnn-step", inputs=8, optimizer="sgd", rate=0.01)
    else:
        sizes.update(workload="asr-lstm", inputs=6, classes=5, optimizer="adam", rate=1e-3)
    return dict(case(**{**sizes, **changes}))


def shrunk(case_id: str, **changes: Any) -> dict[str, Any]:
    """Return a shipped case in a few numbers: the same layers, ways, loss and optimiser."""
    case = {**CASES[case_id], "steps": 7, "batch": 3, "hidden": 5, "inputs": 4}
    if case["vocabulary"]:
        case.update(vocabulary=11, classes=11)
    if case["loss"] == "ctc":
        case.update(steps=13, labels=3, classes=6)
    return {**case, **changes}


SHAPES: dict[str, dict[str, Any]] = {
    **{f"{cell}-step": shrunk(f"rnn-step/{cell}-b32-h128") for cell in ("lstm", "rnn", "gru")},
    **{f"{cell}-step-l3": shrunk(f"rnn-step/{cell}-l3-b32-h128") for cell in ("lstm", "rnn", "gru")},
    **{f"{cell}-sequence": shrunk(f"rnn-sequence/{cell}-l3-t30-b32-h128") for cell in ("lstm", "rnn", "gru")},
    "relu-step": shrunk("rnn-step/rnn-b32-h128", cell="relu"),
    "relu-sequence": shrunk("deepbench-rnn/train-001-vanilla-h1760-b16-t50"),
    "ce": shrunk("asr-lstm/1x320-ce-short"),
    "ce-4-both-ways": shrunk("asr-lstm/4x320-ce-long"),
    "ctc": shrunk("asr-lstm/4x320-ctc-long"),
    "lm": shrunk("lm-lstm/lm-small"),
    "lm-unclipped": shrunk("lm-lstm/ptb-large"),
    "template": shrunk("lm-lstm/template-2x64"),
    "template-clipped": shrunk("lm-lstm/template-2x64", clip_value=0.01, clip_each=0.02),
    "template-both-ways": shrunk("lm-lstm/template-2x64-bidirectional"),
}
"""One case of every kind there is; an implementation is held against those it does not lack."""

CLIPPED: dict[str, dict[str, Any]] = {
    "clip-value": shrunk("lm-lstm/template-2x64", optimizer="sgd", rate=1.0, clip_value=0.01, clip_each=0.0),
    "clip-each": shrunk("lm-lstm/template-2x64", optimizer="sgd", rate=1.0, clip_value=0.0, clip_each=0.02),
}
"""With SGD, for Adam hardly feels how large a gradient is: where a check sees whether gradients are clipped."""

ASR_SHORT = small("lstm", "ce", steps=100, batch=64, inputs=123, hidden=320, classes=10, seed=11)
