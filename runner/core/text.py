"""Text from outside, made safe to print: what a server, an engine or a file wrote must not control a terminal."""

import re
from collections.abc import Sequence
from pathlib import Path

REASON_LENGTH = 500
"""Characters of a reason that is kept and shown."""

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 with ESC and BEL, DEL, C1 with CSI
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of the text after them, see Unicode TR 9
    "\u2028\u2029\ufeff"  # further line ends; a byte order mark
    "\ud800-\udfff]"  # lone surrogates, which no encoding can write
)
_LINE_ENDS = re.compile("\r\n?")


def printable(text: str, limit: int | None = None, *, multiline: bool = False) -> str:
    r"""Return text in which every character that is not visible is written as its escape.

    >>> printable("red \x1b[31m text\nnext"), printable("a long reason", 7)
    ('red \\x1b[31m text next', 'a long…')

    Args:
        text: any text.
        limit: the most characters that are returned; a longer text ends in an ellipsis. None: all of them.
        multiline: keep line ends and tabs, and make each carriage return a line end. False: each becomes a space.
    """
    if limit is not None:
        text = text[: limit + 1]
    text = _LINE_ENDS.sub("\n", text)
    if not multiline:
        text = text.replace("\n", " ").replace("\t", " ")
    text = _UNPRINTABLE.sub(_escape, text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\n\t":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def path_text(path: Path) -> str:
    r"""Return an absolute path as text that can be stored: bytes that are no UTF-8 become escapes.

    >>> path_text(Path("/srv/run\udce9"))
    '/srv/run\\udce9'
    """
    return str(path.absolute()).encode(errors="backslashreplace").decode()


_CREDENTIALS = re.compile(
    r"(?<=://)(?!USER@)[^/?#\s'\"<>]*@"
    r"|(?<=ostgres://|tgresql://|psycopg://)(?!USER@)[^\s'\"<>@]*@"  # where a password may have / and ?
)
"""User and password of an address; ``USER`` is that of a hint."""


def without_credentials(text: str) -> str:
    """Return text whose addresses name no user and no password.

    >>> without_credentials("Looking in indexes: https://ann:secret@pypi.example/simple")
    'Looking in indexes: https://****@pypi.example/simple'
    """
    return _CREDENTIALS.sub("****@", text) if "://" in text else text


def without_label(message: str) -> str:
    """Return the message of a check without what pydantic puts before it.

    >>> without_label("Value error, 'x' is not one of 'a', 'b'")
    "'x' is not one of 'a', 'b'"
    """
    return message.replace("Value error, ", "", 1)


def enumerated(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    >>> enumerated(["torch"]), enumerated(["torch", "jax", "numpy"])
    ('torch', 'torch, jax and numpy')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
