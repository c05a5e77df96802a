"""Where a history is, and that no message names its password."""

import traceback
from pathlib import Path

import pytest

from runner.core.errors import HistoryError, UsageError
from runner.core.text import without_credentials
from runner.history.database import History
from runner.history.location import VARIABLE, database_url, secrets_of, url_name, without_secrets
from tests.support.histories import night

REPORTS = Path("/srv/reports")
SECRET = "hunter2"
URLS = (
    f"postgresql://ann:{SECRET}@127.0.0.1:1/bench",
    f"postgresql://ann@127.0.0.1:1/bench?password={SECRET}",
    f"postgres://ann:{SECRET}@127.0.0.1:port/bench",
    f"postgresql://ann:{SECRET}@127.0.0.1:1/bench?unknown=1",
    f"postgresql://ann:{SECRET}@[::1/bench",
    f"postgresql://ann:a@b{SECRET}@127.0.0.1:1/bench",
    f"postgresql://ann:se?{SECRET}@127.0.0.1:1/bench",
    f"postgresql://ann:se/{SECRET}@127.0.0.1:1/bench",
    f"postgresql://ann:se#{SECRET}@127.0.0.1:1/bench",
)


def test_the_option_comes_before_the_variable_and_the_file_in_the_reports() -> None:
    team = {VARIABLE: "postgresql://ann:pw@db/bench"}
    assert database_url(REPORTS, None, {}) == "sqlite:////srv/reports/history.db"
    assert database_url(REPORTS, None, team) == team[VARIABLE]
    assert database_url(REPORTS, "sqlite:///here.db", team) == "sqlite:///here.db"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@db/x",
        f"postgresql://db/x?password={SECRET}",
        f"postgresql://ann:se?{SECRET}@db/x",
        f"postgresql://ann:se/{SECRET}@db/x",
        f"postgresql://ann:{SECRET}@db:port/x",
    ],
)
def test_a_password_on_the_command_line_is_refused_without_naming_it(url: str) -> None:
    with pytest.raises(UsageError, match=VARIABLE) as refused:
        database_url(REPORTS, url, {})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", ["", "history.db", "mysql://ann@db/x", "sqlite://", "sqlite:///", "sqlite:///a\0b"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="postgresql://USER@HOST/DATABASE"):
        database_url(REPORTS, url, {})


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "#1", "ä", "a@b:c"])
def test_a_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    reports = tmp_path / name
    url = database_url(reports, None, {})
    with History.open(url) as history:
        assert history.add(night(1))
        assert history.name == str(reports / "history.db")
    assert (reports / "history.db").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("url", URLS)
def test_a_server_that_cannot_be_reached_is_a_sentence_without_the_password(url: str) -> None:
    """Libpq is a C library: the guard of the unit tests does not see that it is refused a connection."""
    with pytest.raises(HistoryError) as refused:
        History.open(url)
    shown = "".join(traceback.format_exception(refused.value))
    assert SECRET not in shown
    assert SECRET not in url_name(url)
    assert refused.value.problems[0].hint


def test_the_parts_of_an_address_are_those_that_are_connected_to() -> None:
    url = "postgresql://ann:se?cr/et@db.example:5432/bench?sslmode=require"
    assert url_name(url) == "postgresql://db.example:5432/bench"
    assert secrets_of(url) == {"se?cr/et"}
    assert url_name("postgresql://[::1]:5432/bench") == "postgresql://[::1]:5432/bench"
    assert without_credentials(f"at {url}") == "at postgresql://****@db.example:5432/bench?sslmode=require"


@pytest.mark.parametrize("url", ["postgresql://ann/x:se?cret@db/bench", "postgresql://db/bench?user=ann@corp"])
def test_an_address_with_an_at_sign_that_ends_no_user_is_refused_and_hidden(url: str) -> None:
    assert url_name(url) == "postgresql://****"
    for option, environ in ((url, {}), (None, {VARIABLE: url})):
        with pytest.raises(UsageError) as refused:
            database_url(REPORTS, option, environ)
        shown = str(refused.value)
        assert not any(part in shown for part in ("cret", "se?", "ann/", "ann@", "bench"))
        assert "%40" in shown
    assert without_secrets(f"cannot connect to {url}", url) == "cannot connect to postgresql://****"


def test_the_form_of_an_address_is_a_hint_as_it_is() -> None:
    with pytest.raises(UsageError) as refused:
        database_url(REPORTS, "mysql://ann@db/x", {})
    assert refused.value.problems[0].hint == "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"


def test_secrets_are_replaced_as_they_are_written_and_decoded() -> None:
    url = "postgresql://ann:p%40ss@db/bench?sslpassword=other"
    assert secrets_of(url) == {"p%40ss", "p@ss", "other"}
    assert without_secrets("p@ss, p%40ss and other", url) == "****, **** and ****"
    assert secrets_of("sqlite:///a:b@c") == frozenset()


@pytest.mark.parametrize("content", [b"no database at all, just text " * 40, b"SQLite format 3\0" + b"\xff" * 2000])
def test_a_damaged_file_is_a_sentence_and_stays(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(content)
    with pytest.raises(HistoryError, match="runner history rebuild") as refused:
        History.open(f"sqlite:///{path}")
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url in (f"sqlite:///{tmp_path}/file/history.db", f"sqlite:///{tmp_path}"):
        with pytest.raises(HistoryError, match=str(tmp_path)):
            History.open(url)
