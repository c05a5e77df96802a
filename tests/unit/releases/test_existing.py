"""Interpreters and images as they are: how they are typed, and the ids that they have."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.releases.existing import Existing, existing_ids, portable, split_existing, with_ids


def python(folder: Path) -> Path:
    """Make a file that may be started in an environment below a folder."""
    (folder / "bin").mkdir(parents=True)
    path = folder / "bin" / "python"
    path.touch(mode=0o755)
    return path


def test_a_path_ends_where_a_file_is_whatever_signs_it_has(tmp_path: Path) -> None:
    path = python(tmp_path / "python@3.11" / "a b")
    assert split_existing(f"python:{path}") == ("", Existing("python", str(path)), "")
    assert split_existing(f"!x=python:{path}@env:A=1/nn-lstm/*") == (
        "!",
        Existing("python", str(path), "x"),
        "@env:A=1/nn-lstm/*",
    )
    assert split_existing(f"python:{path}/nn-lstm/*")[2] == "/nn-lstm/*"
    assert split_existing(f"python:{path}@20261126-101010-abcd")[2] == "@20261126-101010-abcd"


def test_a_path_from_here_and_from_the_home_folder_is_one_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = python(tmp_path / "env")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for typed in ("env/bin/python", "./env/bin/python", "env/../env/bin/python", "~/env/bin/python"):
        assert split_existing(f"python:{typed}")[1] == Existing("python", str(path)), typed
    monkeypatch.setenv("PATH", str(path.parent))
    assert split_existing("python:python@threads:4") == ("", Existing("python", str(path)), "@threads:4")
    assert portable("a=python:env/bin/python/nn-lstm/*") == "a=python:~/env/bin/python/nn-lstm/*"
    assert portable(str(tmp_path / "x")) == "~/x"
    assert portable("image:a/b") == "image:a/b"


def test_a_path_that_leads_nowhere_is_kept_as_it_was_typed() -> None:
    assert split_existing("python:/no/such@1/python@env:A=1") == (
        "",
        Existing("python", "/no/such@1/python"),
        "@env:A=1",
    )


@pytest.mark.parametrize(
    ("text", "image", "rest"),
    [
        ("pytorch/pytorch", "pytorch/pytorch:latest", ""),
        ("pytorch/pytorch/*/rnn-step/*", "pytorch/pytorch:latest", "/*/rnn-step/*"),
        ("pytorch/pytorch:2.9.1/nn-lstm/*", "pytorch/pytorch:2.9.1", "/nn-lstm/*"),
        ("python:3.11@env:A=1", "python:3.11", "@env:A=1"),
        ("host:5000/repo", "host:5000/repo:latest", ""),
        ("host:5000/team/repo:1/*", "host:5000/team/repo:1", "/*"),
        (f"x@sha256:{'a' * 64}@threads:4", f"x@sha256:{'a' * 64}", "@threads:4"),
        (f"x:1@sha256:{'a' * 64}/*", f"x:1@sha256:{'a' * 64}", "/*"),
    ],
)
def test_an_image_has_a_tag_behind_which_cells_follow(text: str, image: str, rest: str) -> None:
    assert split_existing(f"image:{text}") == ("", Existing("image", image), rest)


@pytest.mark.parametrize("text", ["torch==2.9.1", "framework:tf", "python:", "images:x", "x/python:y", "@python:x"])
def test_other_selectors_are_neither(text: str) -> None:
    assert split_existing(text) == ("", None, text)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/opt/conda/envs/a/bin/python", "a"),
        ("/opt/conda/bin/python", "conda"),
        ("/home/ann/project/.venv/bin/python", "project"),
        ("/home/ann/project/.pixi/envs/default/bin/python", "project"),
        ("/home/ann/project/.pixi/envs/cuda/bin/python", "cuda"),
        ("/home/ann/.pyenv/versions/3.11.9/bin/python", "python-3.11.9"),
        ("/usr/bin/python3.11", "python3-11"),
        ("/opt/My_Env2.0/bin/python", "my-env2.0"),
        ("/opt/torch-2.10rc1/bin/python", "torch-2.10rc1"),
        (f"/opt/{'a' * 100}/bin/python", "a" * 64),
    ],
)
def test_an_interpreter_has_the_name_of_its_environment(path: str, name: str) -> None:
    word = Existing("python", path)
    assert existing_ids([word]) == {word: name}


def test_an_image_has_its_last_name_and_its_tag() -> None:
    names = ("pytorch/pytorch:2.9.1-cuda12.6", "pytorch/pytorch:latest", f"x@sha256:{'a' * 64}")
    ids = existing_ids([Existing("image", name) for name in names])
    assert [*ids.values()] == ["pytorch-2.9.1-cuda12.6", "pytorch", f"x-{'a' * 12}"]


def test_those_who_share_a_name_have_one_of_their_folders_with_it() -> None:
    words = [Existing("python", f"/opt/{tool}/envs/a/bin/python") for tool in ("conda", "mamba")]
    assert [*existing_ids(words).values()] == ["conda-a", "mamba-a"]
    assert [*existing_ids([*words, words[0]], taken={"mamba-a"}).values()] == ["conda-a", "opt-mamba-a"]
    assert with_ids(["!python:/opt/conda/envs/numpy/bin/python@env:A=1", "numpy"], {"numpy"}) == [
        "!conda-numpy@env:A=1",
        "numpy",
    ]


def test_one_interpreter_is_measured_twice_under_two_names() -> None:
    words = [Existing("python", "/opt/a/bin/python", name) for name in ("x", "y")]
    assert [*existing_ids(words).values()] == ["x", "y"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([Existing("python", "/a/bin/python", "x"), Existing("python", "/b/bin/python", "x")], "the id 'x': another"),
        ([Existing("python", "/a/bin/python", "taken")], "the id 'taken': another has it"),
        ([Existing("image", "a:1", "A b")], "'A b' cannot name an environment"),
    ],
)
def test_an_id_is_refused_that_is_none_or_that_another_has(words: list[Existing], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        existing_ids(words, {"taken"})


@pytest.mark.parametrize("repeated", ["a/", "/a", "a@", "@", "a:", "a-", "@sha256:", "*["])
@pytest.mark.parametrize("kind", ["python", "image"])
def test_the_longest_argument_of_a_command_is_read_in_seconds(kind: str, repeated: str) -> None:
    text = f"{kind}:{repeated * (131_000 // len(repeated))}"
    begin = time.process_time()
    _, word, _ = split_existing(text)
    assert word is not None
    with suppress(UsageError):
        existing_ids([word])
    assert time.process_time() - begin < 5
