# ruff: noqa: INP001  a script, not a package
"""Write the reference pages from the code: ``python docs/generate.py``, with ``--check`` to compare only."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.report import gpu_tables

DOCS = Path(__file__).parent
GENERATED = "<!-- Made by `python docs/generate.py`. Do not edit. -->"


def pages() -> dict[str, str]:
    """Return path below ``docs/`` -> content, for every generated page."""
    from runner.cli import app
    from runner.matrix import load, schema
    from runner.report.coverage import built_alone, coverage

    return {
        "gpus.md": gpus_page(DOCS / "machines", DOCS.parent / "matrix.yaml"),
        "coverage.md": coverage_page(coverage(built_alone(load(DOCS.parent / "matrix.yaml"), DOCS.parent))),
        "reference/cli.md": cli_page(app),
        "reference/gpu-troubles.md": troubles_page(),
        "reference/matrix.md": matrix_page(schema()),
    }


def coverage_page(tables: str) -> str:
    """Return the page of what each framework computes."""
    parts = [
        GENERATED,
        "# Coverage",
        "Which framework of the shipped `matrix.yaml` computes which workload, and which environment does.",
        "The tables are those of a machine without a GPU that can build every environment here and pull no image.",
        "`runner plan --format coverage` makes them for your machine; `runner plan` has the reasons, cell by cell.",
        tables,
        table(
            ("word", "meaning"),
            (
                ("`runs`", "at least one cell runs: an implementation, a case, a phase"),
                ("`needs-gpu`", "what would run computes on a GPU only, or on another one than this machine has"),
                ("`processors`", "its cases are of more processes than a step may have threads"),
                ("`image-unavailable`", "the image cannot be pulled, or the environment has no lock to be built from"),
                ("`framework-lacks`", "no implementation of these releases computes it"),
            ),
        ),
        "Of several reasons the first is shown. [Errors](errors.md#skip-codes) explains every reason there is.",
    ]
    return "\n\n".join(parts) + "\n"


def troubles_page() -> str:
    """Return the page of what is known to go wrong between a GPU and who wants it."""
    from runner.catalog.gpu_errors import troubles

    rows = [(f"`{one.sign}`", one.sentence, one.fix, f"`{one.failure}`", one.source, one.status) for one in troubles()]
    parts = [
        GENERATED,
        "# When a GPU cannot be had",
        (
            "What engines, NVIDIA's tools and CUDA say, and what it means. A run that meets these words says the"
            " sentence and the fix. A container that cannot be started ends the run with exit code 5; a cell that fails"
            " gets the class. Most rows are from other people's reports, and nobody has met them with this program."
        ),
        table(("words", "what it means", "fix", "class", "from", "known"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def gpus_page(folder: Path, matrix: Path) -> str:
    """Return the page of what runs on which GPU: planned for the machines described in a folder."""
    from runner.report import gpu_tables

    machines = described(folder, matrix)
    boards = {machine.gpu.name: machine.gpu for machine in machines}
    sources = gpu_tables.Sources()
    parts = [GENERATED, "# GPUs", GPU_PROSE["first"]]
    parts += ["## Environments", gpu_tables.environments(machines), table(("word", "meaning"), GPU_WORDS)]
    parts += ["Other words are [skip codes](errors.md#skip-codes). Of several reasons the first is shown."]
    parts += ["## Why not", GPU_PROSE["why"]]
    for name in boards:
        parts += [f"### {name}", gpu_tables.refusals([one for one in machines if one.gpu.name == name], sources)]
    parts += ["## Builds", GPU_PROSE["builds"], gpu_tables.code(tuple(boards.values()), sources)]
    parts += [GPU_PROSE["beyond"], gpu_tables.beyond_code(tuple(boards.values()), sources)]
    parts += ["## Sources", sources.items()]
    return "\n\n".join(parts) + "\n"


GPU_PROSE = {
    "first": "What the shipped `matrix.yaml` runs on five GPUs, each with a driver of its time and a recent one, and "
    "why the rest does not. Nothing was measured for this page: it is what `runner plan --machine` says of the "
    "descriptions in `docs/machines/`, which were written by hand. "
    "[Plan for another machine](how-to/plan-for-another-machine.md) tells how to have the same for yours.",
    "why": "The last column is a number of the [sources](#sources). What ends in (unverified) rests on a fact that "
    "nobody has checked.",
    "builds": "Every build whose code is known, by that code alone. `native`: it holds code that the GPU runs. "
    "`JIT`: it holds only PTX of an older GPU, which the driver compiles at the first call. `no`: neither. "
    "Native code needs the driver of the second column or a newer one, PTX that of the third.",
    "beyond": "By their code these would be `JIT`, and they are `no` all the same:",
}

GPU_WORDS = (
    ("`runs`", "it holds code for the GPU, and the driver runs it"),
    ("`runs by JIT`", "the driver compiles PTX at the first call that was made for just this GPU"),
    ("`by JIT`", "only by compiling its PTX for the GPU at the first call, which `--allow-jit` lets it"),
    ("`not by cuDNN`", "what calls cuDNN does not run, for its cuDNN no longer serves the GPU"),
    ("`arch`", "it has no code for the GPU"),
    ("`driver`", "the driver is too old for it, or too new for the GPU"),
    ("`needs-gpu`", "the matrix has no CUDA build of it"),
    ("`image-unavailable`", "there is no lock yet to build it from, or nothing could drive what is in the image"),
)


def described(folder: Path, matrix: Path) -> "list[gpu_tables.Machine]":
    """Return the GPU and the plans of each machine that is described in a folder."""
    from runner.plan.machine_file import describe
    from runner.report import gpu_tables
    from runner.workflows.options import Options
    from runner.workflows.plan_elsewhere import planned

    found = []
    for path in sorted(folder.glob("*.json")):
        machine = describe(path)
        strict, by_jit = (
            planned(Options(matrix=matrix, workload=["rnn-step"], seed=0, allow_jit=allowed), machine)
            for allowed in (False, True)
        )
        found.append(gpu_tables.Machine(gpu=machine.gpus[0], plan=strict, by_jit=by_jit))
    return sorted(found, key=lambda one: (one.gpu.capability, one.gpu.driver))


def cli_page(app: Any) -> str:  # noqa: ANN401  a typer.Typer; its commands have no public types
    """Return the page of all commands and their options."""
    from typer.main import get_command

    commands: Mapping[str, Any] = vars(get_command(app))["commands"]
    parts = [GENERATED, "# Command line", "Results go to stdout, progress and errors to stderr."]
    parts += ["Exit codes are in [errors](../errors.md#exit-codes)."]
    for name, command in commands.items():
        parts += [f"## runner {name}", prose(command.help)]
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        words = " ".join(["runner", name, *map(_usage, arguments), "[OPTIONS]"])
        parts += [f"```text\n{words}\n```"]
        if arguments:
            parts += [table(("argument", "meaning"), ((f"`{_word(one)}`", prose(one.help)) for one in arguments))]
        parts += [table(("option", "default", "meaning"), map(_option, options))]
    return "\n\n".join(parts) + "\n"


def _word(argument: Any) -> str:  # noqa: ANN401
    return str(argument.metavar or argument.name.upper()).strip("[]")


def _usage(argument: Any) -> str:  # noqa: ANN401
    word = _word(argument) + ("..." if argument.nargs == -1 and not argument.metavar else "")
    return word if argument.required else f"[{word}]"


def _option(option: Any) -> tuple[str, str, str]:  # noqa: ANN401
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    nothing = option.default is None or option.default is False
    default = "required" if option.required else "" if nothing else f"`{option.default}`"
    return names, default, prose(option.help)


def matrix_page(schema: Mapping[str, Any]) -> str:
    """Return the page of all keys of a matrix file."""
    models: Mapping[str, Mapping[str, Any]] = {"The top of the file": schema, **schema["$defs"]}
    parts = [GENERATED, "# matrix.yaml"]
    parts += ["Unknown keys, keys given twice and values of another type are refused, each with its line."]
    parts += ["Versions stand in quotes, because YAML reads 3.10 as the number 3.1."]
    parts += ["`runner schema` prints the same as JSON Schema, for editors."]
    for name, model in models.items():
        rows = (_key(key, value, key in model.get("required", ())) for key, value in model["properties"].items())
        parts += [f"## {name}", prose(model["description"]), table(("key", "value", "default", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _key(key: str, value: Mapping[str, Any], required: object) -> tuple[str, str, str, str]:
    default = value.get("default")
    shown = "required" if required else "" if default in (None, [], {}) else f"`{_plain(default)}`"
    if default and isinstance(default, dict):
        shown = "its own defaults"
    return f"`{key}`", " or ".join(_kinds(value)), shown, prose(value.get("description", ""))


def _plain(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _kinds(value: Mapping[str, Any]) -> Iterator[str]:
    """Give what a value may be, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "anyOf" in value:
        for one in value["anyOf"]:
            yield from _kinds(one)
    elif "enum" in value or "const" in value:
        yield ", ".join(f"`{word}`" for word in value.get("enum", [value.get("const")]))
    elif value["type"] == "array":
        yield f"list of {' or '.join(_kinds(value['items']))}"
    elif value["type"] == "object":
        keys = ", ".join(f"`{word}`" for word in value.get("propertyNames", {}).get("enum", ())) or "name"
        inner = value.get("additionalProperties") or next(iter(value["patternProperties"].values()))
        yield f"{keys}: {' or '.join(_kinds(inner))}"
    elif value["type"] != "null":
        yield _simple(value)


def _simple(value: Mapping[str, Any]) -> str:
    word = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}[value["type"]]
    if "pattern" in value:
        word += f" like `{value['pattern']}`".replace("|", "\\|")
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{words} {value[name]:g}" for name, words in bounds.items() if name in value]
    return f"{word}, {' and '.join(limits)}" if limits else word


def prose(text: str) -> str:
    """Return a sentence in which nothing but what stands in backticks is Markdown."""
    parts = text.strip().split("`")
    return "`".join(re.sub(r"([*_<|])", r"\\\1", part) if place % 2 == 0 else part for place, part in enumerate(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Write the pages that differ, or with ``--check`` name them; return 1 if ``--check`` found one."""
    different = []
    for name, content in pages().items():
        path = DOCS / name
        if not path.exists() or path.read_text("utf-8") != content:
            different.append(name)
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, "utf-8")
    verb = "differs" if "--check" in arguments else "written"
    sys.stdout.write("".join(f"docs/{name}: {verb}\n" for name in different))
    return 1 if different and "--check" in arguments else 0


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))  # the runner beside this folder, not another that may be installed
    sys.exit(main(sys.argv[1:]))
