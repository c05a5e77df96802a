"""What measuring a stored run again would start, and whether the user trusts it.

A run folder says which interpreter, environments, locks and networks a run has. One that somebody sent may say
anything, so a run that this user has not started here starts nothing without ``--trust``, decision 0093.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from runner.core.errors import Problem, UsageError
from runner.core.model.cells import is_control
from runner.core.model.variant_ids import without_variant
from runner.core.text import printable
from runner.store.header import RunHeader
from runner.store.run import Run
from runner.store.started import is_started_here

Resume = Literal["no", "own", "any"]
"""Which run continues: none, for a new one starts; one that was started here; or any other, too, which is trusted."""
LONGEST = 200  # characters of a name of the run in a sentence
UNCONFINED = {"venv": "as you, with your files and your network", "host": "as you, with your files and your network"}
IN_CONTAINERS = "in containers without a network"


def require_trust(
    run: Run, header: RunHeader, environments: Sequence[str], say: Callable[[str], object], *, trust: bool
) -> None:
    """Say what a run that was not started here would start, with ``trust``; without it, refuse.

    Args:
        run: the run.
        header: its header.
        environments: those of it that are measured again.
        say: takes the sentences, before anything starts.
        trust: the user has typed ``--trust``.

    Raises:
        UsageError: it was not started here, and ``trust`` is not given.
    """
    if is_started_here(run):
        return
    starts = list(what_starts(run, header, environments))
    if trust:
        say(f"run {run.id} was not started here, and is trusted: it starts")
        for sentence in starts:
            say(f"  {sentence}")
        return
    message = f"run {run.id} was not started here by you: it was sent or copied, or an older version started it"
    text = "; ".join(starts)
    raise UsageError(
        Problem(message),
        Problem(
            f"measuring it again starts {text}", hint="if you trust all of that, repeat the command with `--trust`"
        ),
    )


def what_starts(run: Run, header: RunHeader, environments: Sequence[str]) -> Iterator[str]:
    """Yield what measuring a run again starts, each as the end of a sentence, printable."""
    where = UNCONFINED.get(header.backend, IN_CONTAINERS)
    if header.backend == "host":
        yield f"the interpreter {_shown(header.python)} {where}"
    facts = run.environments()
    names = [name for name in dict.fromkeys(map(without_variant, environments)) if not is_control(name)]
    for name in () if header.backend == "host" else names:
        if name in header.as_is:
            kind, _, source = header.as_is[name].partition(":")
            yield f"the {'image' if kind == 'image' else 'interpreter'} {_shown(source)} {where}, as {_shown(name)}"
            continue
        yield f"the environment {_shown(name)} {where}, {_made_of(facts.get(name, {}), header.locks.get(name))}"
    for name in environments:
        variables = facts.get(name, {}).get("env") or {}
        if variables:
            yield "the variables " + ", ".join(_shown(f"{key}={value}") for key, value in sorted(variables.items()))
    entries = {str(case.get("entry")) for case in run.cases().values() if "files" in case}
    if entries:
        yield f"the code of {', '.join(map(_shown, sorted(entries)))} {where}"
    yield f"what the matrix file {_shown(header.matrix)} names"


def _made_of(facts: Mapping[str, Any], lock: str | None) -> str:
    """Return what an environment is built from, where it has to be built."""
    if facts.get("pulled"):
        return f"from the image {_shown(facts.get('image'))}"
    base = f" on the image {_shown(facts['base'])}" if facts.get("base") else ""
    return f"from {_shown(lock) if lock else 'the lock that the run keeps'}{base}"


def _shown(text: object) -> str:
    return printable(str(text), LONGEST)
