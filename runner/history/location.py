"""Where the history is: the URL of its database, and how messages name it."""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from runner.core.errors import Problem, UsageError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

VARIABLE = "MATRIX_RUNNER_HISTORY"
"""The environment variable with the URL, for a team's database."""
FILE = "history.db"
SQLITE = "sqlite:///"
POSTGRESQL = re.compile(r"postgres(ql)?(\+psycopg)?://")
FORMS = f"write {SQLITE}FILE or postgresql://USER@HOST/DATABASE"
WRITTEN = (
    f"{FORMS}, the port as a number, and / : @ in a user as %2F %3A %40; "
    f"a password belongs into ~/.pgpass, or with the URL into the variable {VARIABLE}"
)
_SCHEME = re.compile(r"[A-Za-z0-9+.-]+://")


def database_url(reports: Path, option: str | None, environ: Mapping[str, str]) -> str:
    """Return the URL of the history: of ``--history``, of the variable, or of the file in the folder of the reports.

    Args:
        reports: the folder that holds the runs.
        option: the value of ``--history``; None without.
        environ: the environment variables.

    Raises:
        UsageError: the option holds a password, which every user of the machine could read; or the URL is of another
            database, or cannot be read.
    """
    url = (environ.get(VARIABLE) or f"{SQLITE}{reports / FILE}") if option is None else option
    if sqlite_path(url) is None and not POSTGRESQL.match(url):
        message = f"a history cannot be at {url_name(url)!r}: it is no URL of SQLite or PostgreSQL"
        raise UsageError(Problem(message, hint=FORMS))
    if sqlite_path(url) is None and server_url(url) is None:
        raise UsageError(Problem(f"the URL of the history, {url_name(url)}, cannot be read", hint=WRITTEN))
    if option is not None and secrets_of(option):
        hint = f"put the URL into the variable {VARIABLE}, or the password into ~/.pgpass"
        raise UsageError(Problem("every user of this machine can read a password in --history", hint=hint))
    return url


def sqlite_path(url: str) -> Path | None:
    """Return the file of a URL of SQLite; None for another URL.

    >>> sqlite_path("sqlite:///reports/history.db"), sqlite_path("sqlite:////srv/history.db")
    (PosixPath('reports/history.db'), PosixPath('/srv/history.db'))
    """
    name = url.removeprefix(SQLITE)
    return Path(name) if name and name != url and "\0" not in name else None


def server_url(url: str) -> "URL | None":
    """Return the parts of a URL of PostgreSQL, as SQLAlchemy reads them when it connects; None if it is none.

    An ``@`` that ends no user may follow a password that would be taken for a database or an option: that is no URL.
    """
    if not POSTGRESQL.match(url):
        return None
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parts = make_url(POSTGRESQL.sub("postgresql+psycopg://", url))
    except (ArgumentError, ValueError):  # the port is no number
        return None
    return None if "@" in url and parts.username is None else parts


def url_name(url: str) -> str:
    """Return how messages name a database: the path of its file, or host and name without user, password and options.

    >>> url_name("sqlite:///reports/history.db"), url_name("postgresql://ann:se?cret@db:5432/bench?sslmode=require")
    ('reports/history.db', 'postgresql://db:5432/bench')
    """
    path = sqlite_path(url)
    if path is not None:
        return str(path)
    parts = server_url(url)
    if parts is None:
        scheme = _SCHEME.match(url)
        return f"{scheme[0]}****" if scheme else "a text that is no URL"
    host = f"[{parts.host}]" if ":" in (parts.host or "") else parts.host or ""
    port = f":{parts.port}" if parts.port else ""
    name = f"{host}{port}/{parts.database or ''}".rpartition("@")[2]  # before an @ may be a part of a password
    return f"postgresql://{name}".rstrip("/")


def has_several_at(parts: "URL") -> bool:
    """Return whether an @ follows the one that ends user and password: probably a part of the password."""
    return "@" in f"{parts.host}{parts.database}"


def secrets_of(url: str) -> frozenset[str]:
    """Return the passwords that a URL holds, as it writes them and decoded; all of a URL that cannot be read.

    >>> sorted(secrets_of("postgresql://ann:p%40ss@db/bench?password=other"))
    ['other', 'p%40ss', 'p@ss']
    """
    if sqlite_path(url) is not None or "://" not in url:
        return frozenset()
    rest = url.partition("://")[2]
    parts = server_url(url)
    if parts is None:
        return frozenset({rest} if "@" in rest or "password" in rest.lower() else ())
    password = str(parts.password or "")
    written = rest.partition(":")[2].partition("@")[0]
    values = [value for name, value in parts.normalized_query.items() if "password" in name.lower()]
    return frozenset({password, *([written] if unquote(written) == password else []), *chain(*values)} - {""})


def without_secrets(text: str, url: str) -> str:
    """Return a text in which the passwords of a URL are replaced."""
    for secret in sorted(secrets_of(url), key=len, reverse=True):
        text = text.replace(secret, "****")
    return text
