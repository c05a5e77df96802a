"""A NumPy that misbehaves once, in the first measurement, and is sound otherwise."""

from pathlib import Path

from tests.faults.bench import Bench

HOOK = '''\
"""Replaces numpy.tanh in the children of harness servers; nothing else that this interpreter runs is touched."""

import os
import sys

MODE, MARKER = {mode!r}, {marker!r}


def misbehave():
    import resource
    import signal
    import subprocess
    import time

    folder = os.environ["TMPDIR"]
    if MODE == "segv":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGSEGV)
    elif MODE == "exit":
        os._exit(3)
    elif MODE == "exit-0":
        os._exit(0)
    elif MODE == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif MODE == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif MODE == "deaf":
        for number in set(signal.Signals) - {{signal.SIGKILL, signal.SIGSTOP}}:
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
    elif MODE == "raise":
        raise RuntimeError("\\x1b]0;owned\\x07\\x1b[2J" + "x" * 5000000)
    elif MODE == "kill-server":
        os.kill(os.getppid(), signal.SIGKILL)
    elif MODE == "print":
        for number in (1, 2):
            for _ in range(200):
                os.write(number, b"x" * 99999 + b"\\n")
    elif MODE == "fork":
        for _ in range(50):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
    elif MODE == "setsid":
        subprocess.Popen(["sleep", "60"], start_new_session=True)
    elif MODE == "files":
        for number in range(20):
            with open(os.path.join(folder, "left-%d" % number), "wb") as stream:
                stream.write(bytes(1 << 20))
    elif MODE == "close":
        os.closerange(0, 1024)
    elif MODE == "hog":
        held = bytearray(2 << 30)
        for position in range(0, len(held), 4096):
            held[position] = 1


def plant(numpy):
    true, server = numpy.tanh, os.getpid()

    def tanh(*arguments, **options):
        if os.getpid() != server:
            try:
                os.close(os.open(MARKER, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                misbehave()
        return true(*arguments, **options)

    numpy.tanh = tanh


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("numpy")
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            plant(module)

        spec.loader.exec_module = exec_module
        return spec


if "matrix-runner-" in os.environ.get("TMPDIR", ""):
    sys.meta_path.insert(0, Finder())
'''


def misbehaving(bench: Bench, mode: str) -> None:
    """Make NumPy misbehave once in the servers of a bench."""
    folder = bench.folder / "hook"
    folder.mkdir()
    hook = HOOK.format(mode=mode, marker=str(bench.folder / "misbehaved"))
    Path(folder, "sitecustomize.py").write_text(hook)
    bench.environment["PYTHONPATH"] = f"{folder}:{bench.environment['PYTHONPATH']}"
