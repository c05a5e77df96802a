"""The process that carries out the tasks of a Dask worker's device; it ends as soon as nobody waits for a reply.

Dask cannot stop a function that runs in a thread. A driver that was killed, or a worker that was given up, would leave
a device busy with a block that does not count.
"""

import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType

LOOK_SECONDS = 0.5
"""Between two looks whether somebody still waits for the reply."""
END_SECONDS = 20.0
"""How long a process may take to stop its containers and to restore its clocks; then it is killed."""
REMOVALS = 5
"""How often the temporary folder is removed: a thread that makes a file at that moment hinders one removal."""

SAFE_PATH = "PYTHONSAFEPATH"

_processes: dict[str, tuple[BaseProcess, Connection]] = {}


def perform_in_process(task: bytes, device: str) -> bytes:
    """Carry out a task in the process of a device, and return the reply; Dask calls this in a thread of a worker.

    Raises:
        RuntimeError: nobody waits for the reply any more.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        state = worker.state.tasks.get(key)
        return worker.status.name not in {"closing", "closed"} and state is not None and state.state == "executing"

    return perform(task, device, is_wanted)


def perform(task: bytes, device: str, is_wanted: Callable[[], bool]) -> bytes:
    """Carry out a task in the process of a device while its reply is wanted; see ``perform_in_process``."""
    process, connection = _processes.get(device) or _start(device)
    if not process.is_alive():
        process, connection = _start(device)
    try:
        connection.send_bytes(task)
        while not connection.poll(LOOK_SECONDS):
            if not is_wanted():
                _end([process])
                message = "nobody waits for the reply any more"
                raise RuntimeError(message)
        return connection.recv_bytes()
    except (EOFError, OSError):
        _end([process])
        return _refusal(task, f"the process that measured has ended with exit code {process.exitcode}")


def end_all() -> None:
    """End the processes of all devices; none runs when this returns."""
    _end([process for process, _ in _processes.values()])


def _start(device: str) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    connection, other_end = context.Pipe()
    process = context.Process(target=_serve, args=(other_end, device), daemon=True)
    os.environ[SAFE_PATH] = "1"  # ``spawn`` starts an interpreter with -c, which would import from the working folder
    process.start()
    other_end.close()
    _processes[device] = process, connection
    return process, connection


def _end(processes: Iterable[BaseProcess]) -> None:
    limit = time.monotonic() + END_SECONDS
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(max(0.0, limit - time.monotonic()))
        process.kill()
        process.join()


def _refusal(task: bytes, reason: str) -> bytes:
    from runner.hosts.tasks import refusal

    return refusal(reason, str(json.loads(task).get("token", "")))


def _serve(connection: Connection, device: str) -> None:
    """Carry out the tasks that arrive, and send the replies, until the worker ends: the life of the process."""
    os.environ.pop(SAFE_PATH, None)  # builds that this process starts may need their folders
    with suppress(KeyboardInterrupt, EOFError, OSError):
        os.setsid()  # Ctrl-C in a terminal interrupts the worker alone, which then ends this process
        signal.signal(signal.SIGTERM, _stop)
        threading.Thread(target=_end_with_worker, daemon=True).start()
        from runner.core.unfinished import temporary_folder
        from runner.hosts.work import perform_guarded

        # What a thread that the end of the process interrupts has made goes with this folder.
        with temporary_folder() as folder:
            tempfile.tempdir = str(folder)
            try:
                while True:
                    connection.send_bytes(perform_guarded(connection.recv_bytes(), device))
            finally:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                for _ in range(REMOVALS):
                    shutil.rmtree(folder, ignore_errors=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_worker() -> None:
    worker = multiprocessing.parent_process()
    assert worker is not None
    worker.join()
    os.kill(os.getpid(), signal.SIGTERM)
