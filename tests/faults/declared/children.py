"""What a framework does in a measurement."""

from tests.faults.fault import Fault, Kept

CHILD = "What a framework does"


def _child(name: str, what: str, **options: object) -> Fault:
    """Return a fault of what a framework does in its first measurement."""
    facts = {"exits": (1,), "kept": Kept.OTHERS, "stage": "in one measurement", **options}
    return Fault(id=f"child-{name}", group=CHILD, what=what, **facts)  # type: ignore[arg-type]


CHILD_FAULTS = (
    _child("segv", "it crashes with SIGSEGV", exits=(0,), sees=(": crash: killed by signal SIGSEGV",), smoke=True),
    _child("exit", "it ends its process with code 3", exits=(0,), sees=(": crash: exit 3 without a result",)),
    _child("exit-0", "it ends its process with code 0", exits=(0,), sees=(": crash: exit 0 without a result",)),
    _child("kill", "it is killed", exits=(0,), sees=(": crash: killed by signal SIGKILL",)),
    _child("stop", "it stops itself with SIGSTOP", sees=(": timeout: not finished after 15 s",)),
    _child("deaf", "it sleeps and ignores every signal", sees=(": timeout: not finished after 15 s",)),
    _child(
        "raise", "it raises an error of 5 MB with control characters", exits=(0,), sees=(": crash: RuntimeError: ",)
    ),
    _child(
        "kill-server", "it kills the server", exits=(0,), sees=(": crash: the harness server was killed by SIGKILL",)
    ),
    _child("print", "it prints 20 MB to stdout and to stderr", exits=(0,), kept=Kept.COMPLETE),
    _child("fork", "it starts 50 processes that sleep", exits=(0,), kept=Kept.COMPLETE),
    _child("setsid", "it starts a process that leaves its session", exits=(0,), kept=Kept.COMPLETE),
    _child("files", "it leaves 20 MB of temporary files", exits=(0,), kept=Kept.COMPLETE),
    _child("close", "it closes all descriptors", exits=(0,), sees=(": crash: exit 1 without a result",)),
)
