# ruff: noqa: INP001  mkdocs loads it by its path
"""What mkdocs does for the site beyond its settings: the start page is home, and the example report is a page."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
EXAMPLES = "reports/examples"
DECISIONS = "decisions/"
"""Pages for those who change the program: they hold the words of every question, and a search would list them first."""
HOMES = {"start.md": "index.html", "index.md": "how-it-works.html"}
"""Page -> its file in the site. ``docs/index.md`` is how the program works, for those who read the files."""
STATUSES = {
    "runs": "runs",
    "runs by JIT": "runs",
    "runs, not by cuDNN": "partly",
    "by JIT": "partly",
    "image-unavailable": "image",
    "needs-gpu": "gpu",
    "arch": "gpu",
    "driver": "driver",
    "framework-lacks": "lacks",
}
"""Status in the tables of what runs where -> its class in ``docs/site.css``."""


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401  mkdocs has no public type for it
    """Set where the home pages go, and add the kept example reports, which are outside ``docs/``."""
    for name, destination in HOMES.items():
        page = files.get_file_from_path(name)
        assert page is not None
        page.dest_uri = destination
    for path in sorted((ROOT / EXAMPLES).rglob("*.html")):
        name = path.relative_to(ROOT / "reports").as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:  # noqa: ANN401
    """Return a page whose links to an example report lead to its copy in the site; decisions are not searched."""
    if page.file.src_uri.startswith(DECISIONS):
        page.meta["search"] = {"exclude": True}
    up = "../" * page.file.src_uri.count("/")
    return markdown.replace(f"]({up}../{EXAMPLES}/", f"]({up}examples/")


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401
    """Return a page whose tables have a colour for each status of an environment."""

    def coloured(match: re.Match[str]) -> str:
        return f'<td class="status {STATUSES[match[1]]}">{match[1]}</td>' if match[1] in STATUSES else match[0]

    return re.sub("<td>([^<]*)</td>", coloured, html)
