"""The documentation names all there is, its links lead somewhere, and its generated pages are what they would be."""

import ast
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest
import yaml
from typer.main import get_command

from runner import cli
from runner.analysis.comparison_model import VERDICTS
from runner.cli import signals
from runner.core import errors
from runner.core.errors import RunnerError
from runner.core.facts import COMPARABLE
from runner.core.model import FAILURE_CLASSES, SKIP_CODES, Phase, Precision, Request
from runner.core.units import disk_size
from runner.harness.verify.tolerance import TOLERANCES
from runner.matrix import load, parse, schema
from runner.plan.compatibility.variants import choose_variants
from runner.plan.machine_file import read_machine_file
from runner.plan.verdicts import selected_cells
from runner.report import data
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from runner.store.samples import COLUMNS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = tuple(sorted(DOCS.rglob("*.md")))
SVG = "{http://www.w3.org/2000/svg}"
SIZES = ("download_bytes", "disk_bytes")
BUG = 70  # what ``console`` ends with after what nobody expected

LINK = re.compile(r"\]\(([^()\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REQUIRED = {
    "version": "1",
    "environments": '{torch-1.0: {framework: torch, release: "1.0.0", image: x}}',  # rules of the examples name it
    "workloads": "{}",
}


def text(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return BLOCK.sub("", page.read_text("utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    return [content for name, content in BLOCK.findall(page.read_text("utf-8")) if name == language]


def commands() -> Mapping[str, Any]:
    """Return the words of each command -> its object, those of groups and of the commands in them."""
    by_name: Mapping[str, Any] = vars(get_command(cli.app))["commands"]
    groups = {name: vars(command)["commands"] for name, command in by_name.items() if "commands" in vars(command)}
    in_groups = {f"{name} {word}": each for name, group in groups.items() for word, each in group.items()}
    return {**by_name, **in_groups}


def options() -> Iterator[tuple[str, str]]:
    for name, command in commands().items():
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                yield from ((name, option) for option in (*parameter.opts, *parameter.secondary_opts))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Give the file and the anchor of each relative link."""
    for target in LINK.findall(prose(page)):
        if "://" not in target:
            name, _, anchor = target.partition("#")
            yield ((page.parent / name).resolve() if name else page), anchor


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_every_command_and_option_is_named(command: str, option: str) -> None:
    section = re.search(rf"^## runner {command}$(.*?)(?=^## |\Z)", text("reference/cli.md"), re.MULTILINE | re.DOTALL)
    assert section is not None
    assert f"`{option}`" in section[1]


def test_every_exit_code_has_its_line() -> None:
    classes = [
        error_class
        for error_class in vars(errors).values()
        if isinstance(error_class, type) and issubclass(error_class, RunnerError)
    ]
    codes = {0, BUG, signals.INTERRUPTED, signals.HUNG_UP, *(error_class.exit_code for error_class in classes)}
    assert set(map(int, re.findall(r"^\| (\d+) \|", text("errors.md"), re.MULTILINE))) == codes
    for error_class in classes:
        assert f"### {error_class.__name__} (exit {error_class.exit_code})" in text("errors.md")


def test_every_skip_code_and_failure_class_has_its_heading_and_no_other_has() -> None:
    assert re.findall(r"^### Skip `(.*)`$", text("errors.md"), re.MULTILINE) == list(SKIP_CODES)
    assert re.findall(r"^### Failure `(.*)`$", text("errors.md"), re.MULTILINE) == list(FAILURE_CLASSES)


@pytest.mark.parametrize(
    "code",
    [
        *("within-margin", "beyond-margin", "beyond-one", "more-rounds", "leaning"),
        *("different-runs", "different-rounds", "unfinished", "no-rounds", "host", *COMPARABLE.values()),
    ],
)
def test_every_code_of_a_comparison_is_explained(code: str) -> None:
    assert f"`{code}`" in text("errors.md").partition("## Codes of a comparison")[2]


def test_every_verdict_phase_precision_and_column_is_explained() -> None:
    for verdict in VERDICTS:
        assert f"| `{verdict}` |" in text("measurement.md")
    for phase in get_args(Phase):
        assert f"| `{phase}` |" in text("measurement.md")
    for column in (*COLUMNS, *data.COLUMNS):
        assert f"`{column}`" in text("reference/records.md")
    assert set(TOLERANCES) == set(get_args(Precision))
    for precision, limits in TOLERANCES.items():
        row = re.search(rf"^\| {precision} \| (.*) \|$", text("same-computation.md"), re.MULTILINE)
        assert row is not None
        assert [0.0 if word == "exactly" else float(word) for word in row[1].split(" | ")] == list(limits)


def test_every_key_of_the_matrix_is_named() -> None:
    made = schema()
    for model in (made, *made["$defs"].values()):
        for key in model["properties"]:
            assert f"| `{key}` |" in text("reference/matrix.md")


@pytest.mark.whole_matrix
def test_the_generated_pages_are_what_the_generator_makes_now() -> None:
    for name, content in runpy.run_path(str(DOCS / "generate.py"))["pages"]().items():
        assert text(name) == content, f"docs/{name} differs: run python docs/generate.py"


def test_the_pictures_are_what_the_generator_draws_now() -> None:
    drawn = runpy.run_path(str(DOCS / "generate.py"))["images"](
        {name: text(name) for name in ("coverage.md", "gpus.md")}
    )
    assert set(drawn) == {f"images/{path.name}" for path in (DOCS / "images").glob("*.svg")}
    for name, content in drawn.items():
        assert text(name) == content, f"docs/{name} differs: run python docs/generate.py"


@pytest.mark.parametrize("picture", sorted((DOCS / "images").glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_has_a_title_a_ground_and_its_size_requests_nothing_and_is_shown(picture: Path) -> None:
    root = ET.fromstring(picture.read_text("utf-8"))
    title, ground = root.find(f"{SVG}title"), root.find(f"{SVG}rect")
    assert title is not None
    assert title.text
    assert ground is not None
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert not re.search(r"(?:href|src)=|url\(|@import", picture.read_text("utf-8"))
    assert any(f"images/{picture.name})" in text(page.relative_to(DOCS).as_posix()) for page in PAGES)


def leaves(navigation: Any) -> Iterator[str]:
    """Give the targets of a navigation, whose sections may have groups."""
    if isinstance(navigation, str):
        yield navigation
    else:
        for entry in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from leaves(entry)


def test_the_search_of_the_site_needs_neither_a_server_nor_another_host() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    (script,) = settings["extra"]["polyfills"]
    assert "offline" in settings["plugins"]
    assert "iframe-worker" in script  # else the plugin adds the one of another host
    assert "location.protocol" in text(script)


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert [name for section in navigation for name in section] == [
        *("Start", "How to", "Understand", "Reference", "Decisions")
    ]
    targets = list(leaves(navigation))
    pages = sorted(target for target in targets if target.endswith(".md"))
    assert pages == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)
    assert all((ROOT / "reports" / target).exists() for target in targets if target not in pages)
    (how_to,) = (section["How to"] for section in navigation if "How to" in section)
    assert [len(group) for group in how_to] == [1] * 6
    assert max(len(pages) for group in how_to for pages in group.values()) <= 7


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_every_benchmark_is_named_where_contributors_look() -> None:
    text, main = (DOCS / "contributing.md").read_text(), (ROOT / "benchmarks" / "__main__.py").read_text()
    figures = dict(re.findall(r'^    "([a-z-]+)": (\w+)\.\w+,$', main, re.MULTILINE))
    assert [name for name in figures if f"| `{name}` |" not in text] == []
    modules = [path for path in (ROOT / "benchmarks").glob("[a-z]*.py") if path.stem not in figures.values()]
    programs = [path.stem for path in modules if '__name__ == "__main__"' in path.read_text()]
    assert len(figures) > 15
    assert len(programs) > 10
    assert [name for name in programs if not re.search(rf"benchmarks[./]{name}\b", text)] == []


def test_no_two_rows_of_the_index_are_about_the_same_thing() -> None:
    places = (DOCS / "index.md").read_text().partition("\n## Where to look")[2].partition("\n## ")[0]
    subjects = [line.split(" | ")[0] for line in places.splitlines() if line.startswith("| ")]
    assert len(subjects) > 30
    assert len(set(subjects)) == len(subjects)


def test_a_verdict_of_a_readers_network_is_a_link_and_250_words_from_home() -> None:
    """The way is the home page up to its link, and the page behind it up to the end of what the command prints."""
    to_the_link, link, _ = text("start.md").partition("](how-to/measure-your-network.md)")
    printed = re.search(r"^```text\n(.*?)^```$", text("how-to/measure-your-network.md"), re.MULTILINE | re.DOTALL)
    assert link
    assert printed is not None
    assert re.search(r"\b(faster|slower|same)\b", printed[1])
    assert len(to_the_link.split()) + len(printed.string[: printed.end()].split()) <= 250


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    new = {README}
    while new:
        reached |= new
        targets = {target for page in new for target, _ in links(page)}
        new = {target for target in targets - reached if target.suffix == ".md"}
    assert set(PAGES) <= reached


def test_the_readme_begins_with_two_commands_and_ci_runs_the_second() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 120
    first, second = blocks(README, "sh")[:2]
    assert first == "python3 -m pip install nox && python3 -m nox -s matrix\n"
    assert second == "python3 -m nox -s tests\n"
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert f"{second.strip()} -- --need docker,browser,postgresql,slurm,podman\n" in ci


def test_the_readme_says_what_the_environments_take() -> None:
    matrix = load(ROOT / "matrix.yaml")
    cells = selected_cells(matrix, Request(environments=tuple(matrix.environments), preset="quick"))
    builds = [matrix.environments[name].variant("cpu") for name in {cell.environment for cell in cells}]
    sums = (sum(getattr(build, key) for build in builds) for key in SIZES)
    download, disk = map(disk_size, sums)
    assert f"{download} to download and {disk} on disk" in README.read_text("utf-8")


def test_the_readme_and_the_first_day_say_what_the_environments_of_a_gpu_take() -> None:
    options = Options(matrix=ROOT / "matrix.yaml", preset="quick", seed=0)
    described = read_machine_file(DOCS / "machines" / "h200-580.json")
    running = {each.cell.environment for each in planned(options, described).cells if each.skip is None}
    matrix, _ = choose_variants(load(options.matrix), described.gpus[0])
    builds = [matrix.environments[name].variant("cuda") for name in running]
    download, disk = (disk_size(sum(getattr(build, key) for build in builds)) for key in SIZES)
    for page in (README, DOCS / "how-to" / "first-day-with-a-gpu.md"):
        assert f"{download} to download and {disk} on disk" in page.read_text("utf-8")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_in_the_text_exists(page: Path) -> None:
    content = page.read_text("utf-8")
    assert set(re.findall(r"(?:^|`)runner ([a-z]+)", content, re.MULTILINE)) <= set(commands())
    functions = {
        node.name for node in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body if hasattr(node, "name")
    }
    assert set(re.findall(r"nox(?: -R)? -s ([a-z]+)", content)) <= functions


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_matrix_in_the_text_is_valid(page: Path) -> None:
    for text in blocks(page, "yaml"):
        block = text.replace("toy-lstm: {cases: [b32", "rnn-step: {cases: [lstm-b32")  # a page adds this workload
        missing = [
            f"{key}: {minimum}\n" for key, minimum in REQUIRED.items() if not re.search(f"^{key}:", block, re.MULTILINE)
        ]
        parse("".join([*missing, block]).encode(), page.name)


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_in_the_text_can_be_read(page: Path) -> None:
    for block in blocks(page, "python"):
        ast.parse(block)
