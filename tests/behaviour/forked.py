"""A process that has imported the program once, and forks for each command: a run of it by itself with any Python.

It reads lines of JSON with ``words`` or ``code``, ``folder``, ``environment``, ``out`` and ``err``, and answers each
with the exit code.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import re
import runpy
import signal
import sys
import traceback
from typing import Any

OTHERS = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "sqlalchemy",
    "alembic.command",
    "jinja2",
    "yaml",
    "rich",
    "docker",
)
SKIPPED = re.compile(r"^runner\.(harness|__main__)|\.migrations\b")
SECONDS = 600


def child(step: dict[str, Any]) -> None:
    """Run a step as a fresh process would."""
    signal.alarm(SECONDS)
    os.chdir(step["folder"])
    os.environ.clear()
    os.environ.update(step["environment"])
    for number, path in enumerate((os.devnull, step["out"], step["err"])):
        os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    if step["code"]:
        exec(step["code"], {"__name__": "__main__"})
    else:
        sys.argv = ["runner", *step["words"]]
        runpy.run_module("runner", run_name="__main__", alter_sys=True)


def ended(step: dict[str, Any]) -> None:
    """Run a step, and end at once: to free what was imported takes longer than most steps."""
    code: object = 0
    try:
        child(step)
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def import_all() -> None:
    """Import what commands import; what is missing is missing in each of them."""
    import runner

    modules = [module.name for module in pkgutil.walk_packages(runner.__path__, "runner.", onerror=lambda _: None)]
    for name in (*OTHERS, *(each for each in modules if not SKIPPED.search(each))):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    """Serve until stdin ends."""
    import_all()
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0))
    while line := requests.readline():
        pid = os.fork()
        if not pid:
            ended(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        answers.flush()


if __name__ == "__main__":
    main()
