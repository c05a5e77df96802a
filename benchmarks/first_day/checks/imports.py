"""What importing each framework opens: a server forks after the import, which a framework that uses the GPU forbids."""

from collections.abc import Iterator

from benchmarks.first_day.environments import Bench, planned
from benchmarks.first_day.rows import Row, UntestableError
from benchmarks.first_day.settings import Settings
from runner.core.model import Spec

SUBJECT = "what an import opens"
SECONDS = 120.0  # for the import of a framework from a slow disk


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each environment that exists."""
    bench = planned(settings, settings.options(preset="quick"))
    if not bench.specs:
        raise UntestableError("no environment is ready")
    for spec in bench.specs:
        yield _row(bench, spec)


def _row(bench: Bench, spec: Spec) -> Row:
    name = f"import of {spec.framework} in {spec.environment}"
    with bench.probe(spec) as probe:
        answer = probe.ask("imports", SECONDS, framework=spec.framework, threads=bench.context.request.threads)
    if "error" in answer:
        return Row(name, "did not hold", str(answer["error"]), {"framework": spec.framework})
    before, after = answer["before"], answer["after"]
    threads = after["threads"] - before["threads"]
    opened = f"opens {after['devices']}" if after["devices"] else "opens no device file"
    forks = "the server forks after it" if answer["forks_after_import"] else "each child imports by itself"
    detail = f"{answer['version']}: {opened}, starts {threads} threads, {answer['seconds']:.1f} s; {forks}"
    held = not (answer["forks_after_import"] and after["devices"])
    values = {**answer, "framework": spec.framework, "environment": spec.environment}
    return Row(name, "held" if held else "did not hold", detail, values)
