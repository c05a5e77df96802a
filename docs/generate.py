# ruff: noqa: INP001  a script, not a package
"""Write the generated pages and pictures: ``python docs/generate.py``, with ``--check`` to compare only."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.core.model import Plan
    from runner.matrix import Matrix

DOCS = Path(__file__).parent
sys.path[:0] = [
    str(DOCS.parent),
    str(DOCS / "generator"),
]  # the runner of this checkout, rather than an installed one, and the modules here
EXAMPLE = DOCS.parent / "reports" / "examples" / "quick-2-cores" / "report.md"
GENERATED = "<!-- Made by `python docs/generate.py`. Do not edit. -->"


def pages() -> dict[str, str]:
    """Return path below ``docs/`` -> content, for every generated page."""
    import gpu_pages

    from runner.cli import app
    from runner.core.architectures import USUAL
    from runner.matrix import load, schema
    from runner.report.coverage import coverage
    from tests.faults.page import page as faults_page

    matrix = DOCS.parent / "matrix.yaml"
    return {
        "faults.md": f"{GENERATED}\n\n{faults_page()}",
        "gpus.md": f"{GENERATED}\n\n{gpu_pages.gpus_page(DOCS / 'machines', matrix)}",
        "coverage.md": coverage_page(coverage(plan_without_images(load(matrix, architecture=USUAL), matrix.parent))),
        "reference/cli.md": cli_page(app),
        "reference/gpu-errors.md": f"{GENERATED}\n\n{gpu_pages.gpu_errors_page()}",
        "reference/matrix.md": matrix_page(schema()),
    }


def images(pages_by_name: Mapping[str, str]) -> dict[str, str]:
    """Return path below ``docs/`` -> content, for every drawn picture.

    Args:
        pages_by_name: the generated pages; two of them have tables that are drawn, too.
    """
    import grids
    import pictures
    from terminal_picture import terminal
    from verdict_picture import verdicts

    return {
        "images/coverage.svg": grids.coverage(pages_by_name["coverage.md"]),
        "images/data-flow.svg": pictures.stages(),
        "images/gpus.svg": grids.gpus(pages_by_name["gpus.md"]),
        "images/terminal.svg": terminal(EXAMPLE.read_text("utf-8")),
        "images/time-line.svg": pictures.time_line(),
        "images/verdicts.svg": verdicts(),
    }


def coverage_page(tables: str) -> str:
    """Return the page of what each framework runs."""
    parts = [
        GENERATED,
        "# Coverage",
        "These tables show which frameworks and environments of the shipped `matrix.yaml` run which workloads.",
        "They assume a machine without a GPU that can build every environment and cannot pull any image.",
        "`runner plan --format coverage` prints them for your machine, `runner plan --all --why` each cell's reason.",
        "![Environments and workloads as a grid with the statuses of the second table](images/coverage.svg)",
        tables,
        table(
            ("status", "meaning"),
            (
                ("`runs`", "at least one cell runs, that is, one implementation of one case and phase"),
                ("`needs-gpu`", "the workload runs only on a GPU, or only on a GPU that this machine does not have"),
                ("`processors`", "the cases need more processes than a step may use threads"),
                ("`image-unavailable`", "the engine cannot pull the image, or the environment has no lock yet"),
                ("`framework-lacks`", "no implementation in these releases supports the workload"),
            ),
        ),
        "The tables show the first of several reasons. [Errors](errors.md#skip-codes) explains every reason.",
    ]
    return "\n\n".join(parts) + "\n"


def plan_without_images(matrix: "Matrix", folder: Path) -> "Plan":
    """Return the plan of a machine without a GPU that can build every locked environment and cannot pull any image.

    Args:
        matrix: the checked matrix; all its environments and the cases of the program are planned, with two threads.
        folder: what the paths of locks are relative to.
    """
    from runner.catalog.cases import WORKLOADS
    from runner.core.model import Request, Skip
    from runner.plan.planner import plan
    from runner.plan.specs import specs

    names = tuple(matrix.environments)
    available, skips = specs(matrix, names, "cpu", folder)
    unavailable = {
        spec.environment: Skip(
            "image-unavailable", f"{spec.image} cannot be pulled" if spec.image else "it has no lock yet"
        )
        for spec in available
        if spec.image or not spec.lock
    }
    request = Request(environments=names, backend="docker", threads=2, workloads=tuple(WORKLOADS))
    return plan(matrix, request, {**skips, **unavailable})


def cli_page(app: Any) -> str:  # noqa: ANN401  a typer.Typer; its commands have no public types
    """Return the page of all commands and their options."""
    parts = [GENERATED, "# Command line", "Commands write results to stdout, and progress and errors to stderr."]
    parts += ["[Errors](../errors.md#exit-codes) lists the exit codes."]
    for name, command in commands(app):
        parts += [f"## runner {name}", prose(command.help)]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
        usage = " ".join(["runner", name, *map(_usage, arguments), "[OPTIONS]"])
        parts += [f"```text\n{usage}\n```"]
        if arguments:
            parts += [
                table(("argument", "meaning"), ((f"`{_argument(each)}`", prose(each.help)) for each in arguments))
            ]
        parts += [table(("option", "default", "meaning"), map(_option, options))]
    return "\n\n".join(parts) + "\n"


def commands(app: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield the words and the object of each command of a typer.Typer, those of a group in place of the group."""
    from typer.main import get_command

    by_name: Mapping[str, Any] = vars(get_command(app))["commands"]
    for name, command in by_name.items():
        in_group: Mapping[str, Any] = vars(command).get("commands", {})
        yield from ((f"{name} {word}", each) for word, each in in_group.items()) if in_group else [(name, command)]


def _argument(argument: Any) -> str:  # noqa: ANN401
    return str(argument.metavar or argument.name.upper()).strip("[]")


def _usage(argument: Any) -> str:  # noqa: ANN401
    text = _argument(argument) + ("..." if argument.nargs == -1 and not argument.metavar else "")
    return text if argument.required else f"[{text}]"


def _option(option: Any) -> tuple[str, str, str]:  # noqa: ANN401
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    nothing = option.default is None or option.default is False
    default = "required" if option.required else "" if nothing else f"`{option.default}`"
    return names, default, prose(option.help)


def matrix_page(schema: Mapping[str, Any]) -> str:
    """Return the page of all keys of a matrix file."""
    models: Mapping[str, Mapping[str, Any]] = {"The top of the file": schema, **schema["$defs"]}
    parts = [GENERATED, "# matrix.yaml"]
    parts += ["The runner refuses unknown keys, duplicate keys and values of a wrong type, and shows the line of each."]
    parts += ["Write versions in quotes, because YAML reads 3.10 as the number 3.1."]
    parts += ["`runner schema` prints the same information as a JSON Schema for editors."]
    for name, model in models.items():
        required = model.get("required") or model.get("anyOf", [{}])[0].get("required", ())
        rows = (_key(key, value, key in required) for key, value in model["properties"].items())
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
    """Yield the kinds that a value may be of."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "anyOf" in value:
        for each in value["anyOf"]:
            yield from _kinds(each)
    elif "enum" in value or "const" in value:
        yield ", ".join(f"`{word}`" for word in value.get("enum", [value.get("const")]))
    elif value["type"] == "array":
        yield f"list of {' or '.join(_kinds(value['items']))}"
    elif value["type"] == "object":
        names = value.get("propertyNames", {})
        names = names.get("anyOf", [names])[0].get("enum", ())
        keys = ", ".join(f"`{word}`" for word in names) or "name"
        inner = value.get("additionalProperties") or next(iter(value["patternProperties"].values()))
        yield f"{keys}: {' or '.join(_kinds(inner))}"
    elif value["type"] != "null":
        yield _simple(value)


def _simple(value: Mapping[str, Any]) -> str:
    word = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}[value["type"]]
    if "pattern" in value:
        word += f" like `{value['pattern']}`".replace("|", "\\|")
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{words} {value[name]:,.16g}" for name, words in bounds.items() if name in value]
    return f"{word}, {' and '.join(limits)}" if limits else word


def prose(text: str) -> str:
    """Return a sentence with Markdown escaped outside backticks."""
    parts = " ".join(text.split()).split("`")
    return "`".join(re.sub(r"([*_<|])", r"\\\1", part) if index % 2 == 0 else part for index, part in enumerate(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Write what differs, or with ``--check`` only name it; return 1 if ``--check`` names one."""
    different = []
    made = pages()
    for name, content in {**made, **images(made)}.items():
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
    sys.exit(main(sys.argv[1:]))
