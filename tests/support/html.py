"""Reads HTML pages in tests."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    """The tags of a page, and its text without styles and scripts."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag in {"style", "script"}

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  the name is of HTMLParser
        """Show text again after a style or a script."""
        self._hidden = False

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text += "" if self._hidden else data


def html_text(page: str) -> str:
    """Return the text of a page, with single spaces."""
    return " ".join(Reader(page).text.split())
