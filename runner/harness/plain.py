"""A plain process: a fresh interpreter that imports a framework, builds a program and calls it, as a user's script does.

A forked child of a server has a heap in which arrays of megabytes have lived and died: its allocator keeps memory that it
would return to the kernel in a script, and calls that allocate are faster than they are for a user. So the child of a
server executes this module in its place. Nothing is verified, reset or profiled here; other processes do that.
"""

from __future__ import generator_stop

import json
import os
import sys
import time

from . import adapters, compile_cache, script_stack
from .link import BUILT, FIRST, PLAIN, TIMED, ServerLink
from .program_file import import_path
from .script_stack import Steps

TASK = "plain.json"  # in the temporary folder of the child
OBJECTS = 3000  # of Python, below which their number in ``other_heap`` is drawn
BLOCKS = 64  # likewise; larger than 512 bytes, they are the C library's and not Python's
BLOCK_BYTES = 122880  # below which their sizes are drawn; the C library maps what has 128 KiB, mallopt(3)


def is_for_fresh_interpreter(request: "dict") -> "bool":
    """Return whether a request is to time a cell in a plain process; profiles and compiling ahead take a forked one."""
    return request.get("process") == PLAIN and request.get("op", "measure") == "measure" and not request.get("precompile")


def needs_reference(request: "dict") -> "bool":
    """Return whether a server compares results with a reference when it answers a request to measure."""
    return not (is_for_fresh_interpreter(request) and request.get("already_verified"))


def start(request: "dict", files: "object", threads: "int", link: "object") -> "None":
    """Execute a fresh interpreter in this child; never returns.

    Whatever a library reads from the environment is there before the interpreter starts.

    Args:
        request: see ``worker.measure``.
        files: the ``ModelFiles`` of a user's network; None for other cases.
        threads: CPU threads, for the adapter.
        link: of this child, which the interpreter takes over.
    """
    compile_cache.use(request["cache"], request.get("driver_cache"))
    entry = None
    if files is not None:
        files.unpack()
        entry = [files.folder, files.entry]
    with open(TASK, "w", encoding="ascii") as file:
        json.dump({"request": request, "threads": threads, "entry": entry, "link": link.kept_open()}, file)
    code = "import sys; sys.path.insert(0, {!r}); from {} import main; del sys.path[0]; main()"
    code = code.format(import_path(), __name__)
    isolated = ["-I"] if sys.flags.isolated else []
    os.execv(sys.executable, [sys.executable] + isolated + ["-c", code])


def main() -> "None":
    """Measure the cell of the task in this folder, and send the result by the link."""
    with open(TASK, encoding="ascii") as file:
        task = json.load(file)
    os.unlink(TASK)
    link = ServerLink(**task["link"])
    link.send(script_stack.run(result(task, link)))
    os._exit(0)  # as a forked child ends: no library tidies up, or hangs


def other_heap() -> "tuple":
    """Return objects and blocks to be kept until the program ends; other blocks were allocated, too, and freed.

    Their number and sizes are random, up to 8 MiB in all. The layout of a heap depends on everything that was allocated
    before: imports, names, the size of the environment. It decides whether the allocator returns memory to the kernel
    after each call, and which objects share a cache line. With NumPy 1.26, a convolution takes 0.34 ms in most layouts
    and 1.1 ms in some, and a loop over strings takes 4 % longer in one layout than in another. A user's script has one
    layout. Without this function, all plain processes would have one other layout in every round. With it, the rounds
    cover many layouts.

    References:
        Mytkowicz et al., Producing wrong data without doing anything obviously wrong, ASPLOS 2009. Curtsinger and Berger,
        STABILIZER: statistically sound performance evaluation, ASPLOS 2013.
    """
    objects = [object() for _ in range(drawn(OBJECTS))]
    blocks = [bytes(drawn(BLOCK_BYTES)) for _ in range(drawn(BLOCKS))]
    halves = drawn(3)  # of the blocks stay
    return objects, [block for block in blocks if drawn(2) < halves]


def drawn(limit: "int") -> "int":
    """Return a random number below a limit of at most 65536; each process has others."""
    return int.from_bytes(os.urandom(4), "little") % limit


def result(task: "dict", link: "object") -> "Steps":
    """Return the result message of a task; a generator, which ``script_stack.run`` runs."""
    request, begin = task["request"], time.perf_counter()
    failure = None
    try:
        adapters.find(request["framework"]).load(task["threads"])
    except BaseException as error:
        failure = error
    from . import worker  # after the framework: it imports NumPy
    from .model import files

    def work():
        if failure is not None:
            raise failure
        folder, entry = task["entry"] or (None, None)
        with worker.explained(request, folder):
            module = files.module(folder, entry) if folder else None
            return (yield from measure(request, module, link if request.get("turns") else None, begin))

    return (yield from worker.run_guarded(work))


def measure(request: "dict", module: "object", wait: "object", begin: "float") -> "Steps":
    """Return the times of a cell, and their facts; a generator, which ``script_stack.run`` runs.

    Args:
        request: see ``worker.measure``.
        module: of the user's network; None for other cases.
        wait: see ``worker.measure``.
        begin: the clock before the import of the framework.
    """
    from . import cases, compilations, device_time, own_memory, worker
    from .model import conduct
    from .model.reference import Builder
    from .verify.trial import METHODS

    memory = own_memory.OwnMemory()
    heap = other_heap()
    start = time.perf_counter()
    case, phase = request["case"], request["phase"]
    chosen = worker.implementation(request["framework"], request["implementation"], case)
    compiled = compilations.Compilations(chosen.compilations)
    if module is not None:
        arrays = Builder(chosen, module, case, request["device"])  # they live until the end, as a script's do
        program = arrays(request["precision"])
    else:
        arrays = cases.materialise(case)
        program = chosen(case, arrays[0], arrays[1], request["device"], request["precision"])
    call = getattr(program, METHODS[phase])
    built = time.perf_counter()
    memory.end(own_memory.BUILD)
    if wait is not None:
        wait(FIRST)
    first = time.perf_counter()
    call()
    program.synchronize()
    now = time.perf_counter()
    memory.end(own_memory.FIRST_CALL)
    seconds, before = now - first, built - begin
    facts = {"process": PLAIN, "compile_seconds": built - start + seconds, "build_seconds": before + seconds}
    facts["first_call_seconds"] = seconds
    if program.description:
        facts["arithmetic"] = program.description
    if wait is not None:
        wait(BUILT)
    memory.begin()
    times = yield from worker.time_call(program, call, request, wait, earlier=1)
    times = worker.on_device(program.waits_for_device, request, times)
    memory.end(own_memory.STEPS)
    compiled.end()
    if wait is not None:
        wait(TIMED)
    if module is not None:
        conduct.check_clock()
    if request["device"] != "cpu":
        facts.update(device_time.facts(program, call, request["seconds"], times.get("batch", 1)))
    del heap
    facts.update(compiled.facts())
    facts.update(memory.facts())
    return dict(facts, child_seconds=time.perf_counter() - begin, **times)
