"""The harness server, one per environment: imports the framework once, then forks a child for each request.

Requests are JSON lines on stdin, replies JSON lines on a private copy of stdout (descriptor 1 is redirected to stderr
before anything else is imported). The end of stdin ends the server and its child.
"""

import gc
import importlib
import os
import shutil
import sys
import time
import traceback

from . import cases, compile_cache, cpu, installed, leftovers, loaded_libraries, plain, procfs, protocol, script_stack
from . import variables
from .model import blob
from .model.store import ModelStore
from .program_file import ProgramFile
from .supervisor import ChildSupervisor, Forked

FORK_SAFE_CHECKS = ("PYTORCH_NVML_BASED_CUDA_CHECK", "TRITON_NVML_BASED_CUDA_CHECK")
"""Variables that have libraries ask NVML whether there is a GPU, instead of initialising CUDA, after which no process may
fork. Sources: https://docs.pytorch.org/docs/stable/cuda_environment_variables.html (since 1.13 or 2.0), and
https://github.com/triton-lang/triton/pull/10933 (proposed after Triton 3.8, which calls cuInit)."""


END_SECONDS = 1.0  # for all processes below the server, at its end; the runner waits for longer


CHANGED = "it has changed the file of {}, which belongs to its server"


class Server(object):
    """Answers ``hello``, ``cold``, ``reference``, ``measure`` and ``profile``, one at a time, in order.

    Users' networks have further requests: ``model`` brings the files, ``trace`` makes a reference in a child and ``fetch``
    reads it; ``expect`` and ``piece`` bring it to another server.
    """

    def __init__(self, source: "object", out: "int"):
        """Read requests from the binary stream ``source``; write replies to the descriptor ``out``."""
        self.source = source
        self.out = out
        self.references = {}
        self.models = ModelStore()
        self.program = ProgramFile.of_this_process()
        self.primed = set()
        self.adapter = None
        self.settings = {}
        self.child = None  # the last one that was forked, until it is reaped
        self.threads = 0
        self.kept = frozenset()  # processes that the import has started

    def reply(self, message: "dict") -> "None":
        """Write a complete line."""
        remaining = protocol.encode(message)
        while remaining:
            remaining = remaining[os.write(self.out, remaining) :]

    def serve(self) -> "None":
        """Answer requests until stdin ends."""
        for line in iter(self.source.readline, b""):
            answer = self.answer(line)
            self.reply(dict(answer, reply="result", settles=self.child is not None))
            if self.child is not None:
                self.reap()  # after the answer: the kernel takes a while to free much memory
                self.child = None
                self.reply({"reply": "gone"})

    def answer(self, line: "bytes") -> "dict":
        """Return the result of a request; a failed one if the line is none, or the server cannot do what it requests."""
        answers = {"hello": self.hello, "cold": self.cold, "reference": self.reference, "measure": self.measure}
        answers["profile"] = self.measure  # in a child, too, of which no sample counts
        answers.update(model=self.models.add_files, trace=self.trace, fetch=self.fetch, expect=self.expect, piece=self.piece)
        number = None
        try:
            request = protocol.decode(line)
            number = request.get("id")
            answer = answers[request["op"]](request)
        except BrokenPipeError:
            raise  # the runner has ended
        except Exception as error:
            traceback.print_exc()
            reason = "the harness server cannot answer: {}: {}".format(type(error).__name__, error)
            answer = {"status": "failed", "class": "crash", "reason": reason}
        return dict(answer, id=number)

    def hello(self, request: "dict") -> "dict":
        """Pin CPUs, set thread counts and import the framework; return its facts, which a child reads from the device."""
        for name in FORK_SAFE_CHECKS:
            os.environ[name] = "1"
        variables.CHOSEN.update(request.get("variables") or ())
        variables.set_threads(request["threads"])
        cpu.pin(request.get("cpus") or [])  # before the import: libraries count the CPUs that they may use
        self.settings = request
        timer = cpu.ImportTimer()
        from . import adapters

        try:
            self.adapter = adapters.find(request["framework"])
            if self.adapter.FORK_AFTER_IMPORT and not request.get("load_in_child"):
                self.load()
        except Exception as error:
            traceback.print_exc()
            return {"status": "failed", "class": "import", "reason": "{}: {}".format(type(error).__name__, error)}
        imported = timer.facts()
        missing = variables.unloaded()
        if missing:
            reason = "LD_PRELOAD names {}, and this environment has no such library".format(missing)
            return {"status": "failed", "class": "import", "reason": reason}
        opened = procfs.open_devices()
        if opened:
            reason = "the import of {} opens {}".format(request["framework"], opened)
            return {"status": "failed", "class": "device", "reason": reason, "opened": opened}
        from . import worker

        self.kept = frozenset(procfs.descendants(os.getpid()))
        procfs.control(procfs.PR_SET_DUMPABLE, 0)  # from now on no child may open its descriptors or memory, see proc(5)
        answer = self.fork(lambda _: worker.run_guarded(self.described), request)
        self.threads = procfs.thread_count()
        gc.collect()
        getattr(gc, "freeze", int)()  # Python 3.7: the garbage collector ignores what the import made, here and in a child
        for name in imported:  # of this server, and of the child where it has imported what this server may not
            answer[name] = imported[name] + answer.get(name, 0.0)
        answer.update(protocol=protocol.PROTOCOL, packages=packages())
        return dict(answer, bytes=procfs.resident_bytes(os.getpid()), python=sys.version.split()[0])

    def load(self) -> "str":
        """Import the framework with all that children need, here or in a child; return its version.

        A second call costs nothing.
        """
        version = self.adapter.load(self.settings["threads"])
        getattr(self.adapter, "load_for_children", int)()
        return version

    def described(self) -> "dict":
        """Return ``facts``, and the times of the import, which are 0 where this server has made it; runs in a child.

        The facts are versions, libraries and names of devices.

        Making the first context may compile all GPU code of a build: the result has to stay in the cache.
        """
        if self.settings.get("cache"):
            compile_cache.use(self.settings["cache"])
        timer = cpu.ImportTimer()
        version = self.load()
        imported_here = timer.facts()
        import numpy

        from .adapters import described

        facts = described.of(self.adapter, version, self.settings["device"])
        facts.update(installed.facts())
        return dict(imported_here, facts=dict(loaded_libraries.facts(), numpy=numpy.__version__, **facts))

    def cold(self, request: "dict") -> "dict":
        """Return which cells a compiler will work on for long."""
        threads = self.settings["threads"]
        cells = compile_cache.cold_cells(self.classes(), request["cache"], threads, request["cells"])
        return {"status": "ok", "cold": cells}

    def classes(self) -> "dict":
        """Return slug -> class of the framework's implementations."""
        return {chosen.slug: chosen for chosen in self.adapter.IMPLEMENTATIONS}

    def reference(self, request: "dict") -> "dict":
        """Keep the reference of a case for the next children."""
        gradients = {name: protocol.unpack(packed) for name, packed in request["gradients"].items()}
        self.references.clear()  # they are large, and a block is one case
        reference = {"loss": request["loss"], "gradients": gradients, "digest": request["digest"]}
        self.references[request["key"]] = dict(reference, outputs=protocol.unpack(request["outputs"]))
        return {"status": "ok"}

    def expect(self, request: "dict") -> "dict":
        """Keep the reference of a user's network for the next children; its arrays follow, see ``piece``."""
        self.references.clear()
        self.references[request["key"]] = self.models.expect(request)
        return {"status": "ok"}

    def piece(self, request: "dict") -> "dict":
        """Append a piece to the arrays of the reference."""
        return self.models.append(self.references[request["key"]], request["data"])

    def fetch(self, request: "dict") -> "dict":
        """Return a piece of the arrays of the reference."""
        return self.models.piece(self.references[request["key"]]["path"], request["offset"], request["size"])

    def trace(self, request: "dict") -> "dict":
        """Make the reference of a user's network in a child, and keep it for the next ones."""
        from . import worker

        unfit = self.unfit()
        if unfit:
            return unfit
        files, path = self.models.files[request["case"]["files"]], self.models.new_file()
        self.references.clear()
        answer = self.fork(lambda _: worker.run_reference(request, files, self.load, path), request)
        if answer["status"] == "ok":
            made = {name: answer[name] for name in ("facts", "arrays")}
            self.child.scratch.accept(path)
            made.update(base=request["base"], files=files, path=path, content=blob.content(path))
            self.references[request["key"]] = made
        return answer

    def unfit(self) -> "object":
        """Return a failed result where this server may not fork a child that uses the device; else None."""
        devices = procfs.open_devices()
        if devices:
            reason = "the server has {} open before the fork".format(devices)
            return {"status": "failed", "class": "device", "reason": reason}
        if procfs.thread_count() > self.threads:
            return {"status": "failed", "class": "crash", "reason": "a thread was started in the server before the fork"}
        return None

    def measure(self, request: "dict") -> "dict":
        """Measure a cell in a child; a cold start gets an empty cache, a warm one a cache that was used before."""
        from . import worker

        unfit = self.unfit()
        if unfit:
            return unfit
        if plain.is_for_fresh_interpreter(request):
            return self.measure_plainly(request)
        reference = self.references[request["key"]]
        if request["phase"] == "compile":
            return self.fork(lambda _: worker.run_cold(request, reference, self.load), request)
        name = (request["key"], request["implementation"], request["precision"])
        if request["phase"] == "compile-warm" and name not in self.primed:
            first = self.fork(lambda _: worker.run(request, reference, self.load), request)
            if first["status"] != "ok":
                return first
            self.primed.add(name)
        turns = request.get("turns")
        answer = self.fork(lambda wait: worker.run(request, reference, self.load, wait if turns else None), request)
        chosen = self.classes().get(request["implementation"])
        if chosen is not None and answer["status"] == "ok":
            compile_cache.mark_compiled(chosen, request, request["cache"], self.settings["threads"])
        return answer

    def measure_plainly(self, request: "dict") -> "dict":
        """Measure a cell in a fresh interpreter; a forked child verifies its results first, unless one has done so."""
        from . import worker

        checked = {}
        if plain.needs_reference(request):
            reference = self.references[request["key"]]
            checked = self.fork(lambda _: worker.run(dict(request, check=True), reference, self.load), request)
            if checked["status"] != "ok":
                return checked
            checked["check_seconds"] = checked["child_seconds"]
        files = self.models.files.get(request["case"].get("files"))
        threads = self.settings["threads"]
        return dict(checked, **self.fork(lambda link: plain.start(request, files, threads, link), request))

    def fork(self, work: "object", request: "dict") -> "dict":
        """Run ``work`` in a child under the request's limits; return its result or its failure."""
        if self.child is not None:
            self.reap()  # it has filled the cache for this one
        begin = time.perf_counter()
        self.child = ChildSupervisor(work, self.out, self.source, self.kept)
        turn = (lambda stage, pace: self.turn(request["id"], stage, pace)) if request.get("turns") else None
        answer = self.child.wait_for_result(request["timeout"], request.get("memory"), self.beat, turn)
        reason = self.misconduct(answer, request)
        if reason:
            answer = {"status": "failed", "class": "crash", "reason": reason, "log": answer["log"]}
        elif answer["status"] == "ok" and cases.is_model(request.get("case") or {}):
            answer.pop("conduct", None)
            remarks = self.child.watch.remarks(answer)
            answer.update({"conduct": remarks} if remarks else {})
        answer["round_seconds"] = time.perf_counter() - begin
        return answer

    def misconduct(self, answer: "dict", request: "dict") -> "str":
        """Return why a good answer of a child is none: it has changed what the server relies on; or what a network did."""
        if self.program.is_changed():
            return CHANGED.format("the harness")
        if answer["status"] != "ok" or not cases.is_model(request.get("case") or {}):
            return ""
        reference = self.references.get(request.get("key"))
        if reference and blob.content(reference["path"]).digest() != reference["content"].digest():
            return CHANGED.format("the reference")
        return self.child.watch.misconduct(answer)

    def reap(self) -> "None":
        """End the last child and all that it started; put back what it has changed of the harness."""
        self.child.reap()
        self.program.put_back()

    def turn(self, number: "int", stage: "str", pace: "object") -> "object":
        """Report that the child waits for its turn, and why; return when the runner lets it continue.

        Returns:
            the plan of its turns, see ``turn_plan.plans``; None where the runner has sent none.

        Raises:
            BrokenPipeError: stdin has ended.
            ValueError: the runner has sent another message.
        """
        self.reply(dict({"pace": pace} if pace is not None else {}, id=number, reply="turn", stage=stage))
        line = self.source.readline()
        if not line:
            raise BrokenPipeError
        message = protocol.decode(line)
        plan = message.pop("plan", None)
        if message != {"op": "go", "id": number}:
            raise ValueError("expected the turn of a waiting child, received another message")
        return plan

    def beat(self) -> "None":
        """Report that the child is still running."""
        self.reply({"reply": "heartbeat"})


def remove_temporary_folder() -> "None":
    """Remove the temporary folder that the runner made for this server alone; the runner may have ended already."""
    folder = os.environ.get("TMPDIR", "")
    if os.path.basename(folder).startswith(leftovers.PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def packages() -> "dict":
    """Return name -> version of the installed packages; empty where that cannot be read."""
    try:
        metadata = importlib.import_module("importlib.metadata")  # Python 3.8
    except ImportError:
        metadata = None
    try:
        if metadata is None:
            return {package.project_name: package.version for package in importlib.import_module("pkg_resources").working_set}
        return {package.metadata["Name"]: package.version for package in metadata.distributions() if package.metadata["Name"]}
    except Exception:  # damaged metadata must not stop a measurement
        return {}


def main(source: "object") -> "None":
    """Serve requests from ``source`` until it ends; only replies are written to stdout."""
    out = os.dup(1)
    os.dup2(2, 1)
    leftovers.adopt_orphans()
    server, steps = os.getpid(), None
    try:
        Server(source, out).serve()
    except Forked as child:
        steps = child.steps
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        if os.getpid() == server:
            leftovers.end_processes((), END_SECONDS)
            remove_temporary_folder()
    if steps is not None:
        script_stack.run(steps)
