"""The harness server: one per environment; imports the framework once, then forks a child for each request.

Requests are JSON lines on stdin, replies JSON lines on a private copy of stdout (descriptor 1 is pointed at stderr
before anything else is imported). End of stdin ends the server and its child.
"""

import gc
import importlib
import os
import shutil
import sys
import tempfile
import time

from . import compile_cache, cpu, protocol
from .supervisor import Watch

HEARTBEAT = 1.0


class Server(object):
    """Answers ``hello``, ``cold``, ``reference`` and ``measure``, one at a time, in order."""

    def __init__(self, source: "object", out: "int"):
        """Read requests from the binary stream ``source``; write replies to the descriptor ``out``."""
        self.source = source
        self.out = out
        self.truths = {}
        self.primed = set()
        self.adapter = None
        self.settings = {}
        self.last = None
        self.threads = 0

    def reply(self, message: "dict") -> "None":
        """Write one line, whole."""
        rest = protocol.encode(message)
        while rest:
            rest = rest[os.write(self.out, rest) :]

    def serve(self) -> "None":
        """Answer until stdin ends."""
        answers = {"hello": self.hello, "cold": self.cold, "reference": self.reference, "measure": self.measure}
        for line in iter(self.source.readline, b""):
            request = protocol.decode(line)
            found = dict(answers[request["op"]](request), id=request["id"], reply="result")
            self.reply(dict(found, settles=self.last is not None))
            if self.last is not None:
                self.last.reap()  # after the answer: giving back much memory takes a while
                self.last = None
                self.reply({"reply": "gone"})

    def hello(self, request: "dict") -> "dict":
        """Set processors and thread counts, import the framework and say what is here; facts of the device come from a child."""
        for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM"):
            os.environ[name + "_NUM_THREADS"] = str(request["threads"])
        cpu.stay(request.get("cpus") or [])  # before the import: libraries count the processors they may use
        self.settings = request
        begin = time.perf_counter()
        from . import adapters

        try:
            self.adapter = adapters.find(request["framework"])
            if self.adapter.FORK_AFTER_IMPORT:
                self.load()
        except Exception as error:
            import traceback

            traceback.print_exc()
            return {"status": "failed", "class": "import", "reason": "{}: {}".format(type(error).__name__, error)}
        seconds = time.perf_counter() - begin
        from . import worker

        found = self.fork(lambda _: worker.guarded(lambda: {"facts": self.facts()}), request)
        self.threads = thread_count()
        gc.collect()
        getattr(gc, "freeze", int)()  # Python 3.7: what the import made is never looked at again, here or in a child
        own = {"packages": packages(), "import_seconds": seconds, "bytes": resident(os.getpid()), "python": sys.version.split()[0]}
        return dict(found, protocol=protocol.PROTOCOL, **own)

    def load(self) -> "None":
        """Import the framework, here or in a child; a second call costs nothing."""
        self.adapter.load(self.settings["threads"])

    def facts(self) -> "dict":
        """Return versions and names of devices; runs in a child, since it may touch the device."""
        self.load()
        import numpy

        return dict(self.adapter.facts(self.settings["device"]), numpy=numpy.__version__)

    def cold(self, request: "dict") -> "dict":
        """Say which cells have to be compiled for long."""
        return {"status": "ok", "cold": compile_cache.cold(self.classes(), request["cache"], self.settings["threads"], request["cells"])}

    def classes(self) -> "dict":
        """Return the implementations of the framework by slug."""
        return {found.slug: found for found in self.adapter.IMPLEMENTATIONS}

    def reference(self, request: "dict") -> "dict":
        """Keep the reference of a case for the children that come."""
        gradients = {name: protocol.unpack(packed) for name, packed in request["gradients"].items()}
        self.truths.clear()  # they are large, and a block is one case
        truth = {"loss": request["loss"], "gradients": gradients, "digest": request["digest"]}
        self.truths[request["key"]] = dict(truth, outputs=protocol.unpack(request["outputs"]))
        return {"status": "ok"}

    def measure(self, request: "dict") -> "dict":
        """Fork a child for one cell; a cold start gets an empty cache, a warm one a cache that was used before."""
        from . import worker

        touched = open_devices()
        if touched:
            return {"status": "failed", "class": "device", "reason": "the server holds {} open before the fork".format(touched)}
        if thread_count() > self.threads:
            return {"status": "failed", "class": "crash", "reason": "a thread was started in the server before the fork"}
        truth = self.truths[request["key"]]
        if request["phase"] == "compile":
            cold = tempfile.mkdtemp(prefix="cold-")
            try:
                return self.fork(lambda _: worker.run(dict(request, cache=cold), truth, self.load), request)
            finally:
                shutil.rmtree(cold, ignore_errors=True)
        name = (request["key"], request["implementation"], request["precision"])
        if request["phase"] == "compile-warm" and name not in self.primed:
            first = self.fork(lambda _: worker.run(request, truth, self.load), request)
            if first["status"] != "ok":
                return first
            self.primed.add(name)
        turns = request.get("turns")
        found = self.fork(lambda wait: worker.run(request, truth, self.load, wait if turns else None), request)
        chosen = self.classes().get(request["implementation"])
        if chosen is not None and found["status"] == "ok":
            compile_cache.made(chosen, request, request["cache"], self.settings["threads"])
        return found

    def fork(self, work: "object", request: "dict") -> "dict":
        """Run ``work`` in a child under the request's limits; return its result or how it ended."""
        if self.last is not None:
            self.last.reap()  # the one that primed a cache
        begin = time.perf_counter()
        self.last = Watch(work, self.out, self.source)
        found = self.last.follow(request["timeout"], request.get("memory"), self.beat, lambda: self.turn(request["id"]))
        found["round_seconds"] = time.perf_counter() - begin
        return found

    def turn(self, number: "int") -> "None":
        """Tell the runner that the child waits, and return when it may go on.

        Raises:
            BrokenPipeError: stdin ends.
            ValueError: the runner says anything else.
        """
        self.reply({"id": number, "reply": "turn"})
        line = self.source.readline()
        if not line:
            raise BrokenPipeError
        if protocol.decode(line) != {"op": "go", "id": number}:
            raise ValueError("a child waits for its turn, and was told something else")

    def beat(self) -> "None":
        """Tell the runner that the child is still at work."""
        self.reply({"reply": "heartbeat"})


def remove_own_folder() -> "None":
    """Remove the temporary folder that a runner made for this server alone, if there is one; it may be dead by now."""
    folder = os.environ.get("TMPDIR", "")
    if os.path.basename(folder).startswith("matrix-runner-"):
        shutil.rmtree(folder, ignore_errors=True)


def open_devices() -> "str":
    """Return the accelerator device files this process holds open, as text; empty when there are none."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink("/proc/self/fd/" + number)
        except OSError:
            continue
        if path.startswith(("/dev/nvidia", "/dev/dri", "/dev/kfd")):
            found.add(path)
    return ", ".join(sorted(found))


def thread_count() -> "int":
    """Return how many threads this process has; those a framework starts at its import are there from the beginning."""
    return len(os.listdir("/proc/self/task"))


def packages() -> "dict":
    """Return the version of every package this interpreter has installed, by name; empty where that cannot be read."""
    try:
        metadata = importlib.import_module("importlib.metadata")  # Python 3.8
    except ImportError:
        metadata = None
    try:
        if metadata is None:
            return {found.project_name: found.version for found in importlib.import_module("pkg_resources").working_set}
        return {found.metadata["Name"]: found.version for found in metadata.distributions() if found.metadata["Name"]}
    except Exception:  # damaged metadata is no reason not to measure
        return {}


def resident(pid: "int") -> "int":
    """Return the resident set of a process in bytes; 0 once it is gone."""
    try:
        with open("/proc/{}/statm".format(pid), encoding="ascii") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def main(source: "object") -> "None":
    """Serve requests from ``source`` until it ends, with stdout kept for replies alone."""
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        Server(source, out).serve()
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        remove_own_folder()
