"""A matrix from elsewhere: what its values may be before they reach pip, the container engine or the file system."""

import os
from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.matrix import load, parse, position

MATRIX = """\
version: 1
workloads: {{rnn-step: {{}}}}
environments:
  {name}: {{framework: numpy, release: "2.0", python: "3.11", {body}}}
"""
LINE = 4


def matrix(body: str, name: str = "np") -> str:
    return MATRIX.format(name=name, body=body)


def refusal(text: str, *, hint: bool = True) -> str:
    """Return the message of a refused matrix, which has its place and a hint; a limit needs none."""
    with pytest.raises(MatrixError) as caught:
        parse(text.encode(), "m.yaml")
    (problem,) = caught.value.problems
    assert problem.where is not None
    assert problem.hint or not hint
    assert str(caught.value).isascii()
    return problem.message


@pytest.mark.parametrize("name", ["a-..", "np-1.", "a-.b", "a-1..2", "a-1.-2", "a-b-", "a" * 65, "--help"])
def test_an_id_that_cannot_be_a_part_of_an_image_s_name_is_refused(name: str) -> None:
    assert "is not an environment id" in refusal(matrix("lock: a", name)) or len(name) > 64


def test_an_id_has_at_most_64_characters() -> None:
    assert "more than 64 characters" in refusal(matrix("lock: a", "a" * 65))
    assert list(parse(matrix("lock: a", "a" * 64).encode(), "m.yaml").environments) == ["a" * 64]


@pytest.mark.parametrize(
    "image",
    [
        *(
            "x y",
            "SEC:...",
            "x@sha256:00",
            "--help",
            "x AS y",
            "x/../../containers/NAME",
            "../x",
            "x/",
            "/x",
            "X",
            "x:",
        ),
        *("a..b", "a__-b", "x:.tag", f"x:{'t' * 129}", "https://x/y", "x@md5:" + "0" * 32, "[::1", "a" * 256, "0" * 64),
    ],
)
def test_an_image_is_the_name_of_an_image_and_nothing_else(image: str) -> None:
    for key in ("image", "base"):
        body = f'{key}: "{image}"' + (", lock: a" if key == "base" else "")
        assert refusal(matrix(body)).startswith(f"{key} is not the name of a Docker image")


@pytest.mark.parametrize(
    "image",
    [
        *("x", "python:3.11-slim", "tensorflow/tensorflow:1.8.0-gpu-py3", "localhost:5000/a/b_c__d-e--f.g:T_1.x"),
        *(
            "[2001:db8::1]:5000/x",
            "MYHOST.example/x:1",
            f"x@sha256:{'0' * 64}",
            f"x:1@sha512:{'a' * 128}",
            "127.0.0.1:1/x",
        ),
    ],
)
def test_a_name_of_docker_s_grammar_is_accepted(image: str) -> None:
    loaded = parse(matrix(f'image: "{image}"').encode(), "m.yaml")
    assert loaded.environments["np"].image == image


@pytest.mark.parametrize(
    "repository",
    [
        *("team/runner", "registry.example", "registry.example/", "registry.example/team:tag", "registry.example/Team"),
        *(f"registry.example/team@sha256:{'0' * 64}", "https://registry.example/team", "user:word@registry.example/x"),
        *("registry.example/../team", "registry.example/a b", "registry.example:x/team", f"r.example/{'a' * 250}"),
    ],
)
def test_a_registry_is_a_repository_with_its_host(repository: str) -> None:
    text = f'{matrix("lock: a")}\nregistry: "{repository}"'
    assert refusal(text).startswith("registry is not a repository of a registry")


@pytest.mark.parametrize(
    "repository", ["registry.example.com/team/matrix-runner", "localhost/x", "localhost:5000/x", "r:5000/a__b/c-d.e"]
)
def test_a_repository_is_accepted(repository: str) -> None:
    assert parse(f'{matrix("lock: a")}\nregistry: "{repository}"'.encode(), "m.yaml").registry == repository


@pytest.mark.parametrize(
    "requirement",
    [
        *("-e /path", "--index-url http://x", "--find-links /x", "-c /etc/shadow", "-r /etc/hostname", "--help", "./x"),
        *("git+https://example.org/x", "${HOME}", "evil @ file:///path", "evil @ https://example.org/x.whl", "/path"),
        *("numpy==2.4.6 --hash=sha256:00", "numpy==2.4.6 # x", "numpy==", "numpy; rm"),
    ],
)
def test_a_requirement_is_a_name_and_versions_and_nothing_else(requirement: str) -> None:
    message = refusal(matrix(f'requirements: ["{requirement}"]'))
    assert message.startswith(
        ("an item of requirements is not a requirement (PEP 508)", "an item of requirements has an")
    )


@pytest.mark.parametrize(
    "requirement", ["numpy", "torch==2.13.0+cpu", "tensorflow[and-cuda]==2.21.0", "a<2; python_version<'3'"]
)
def test_a_requirement_of_pep_508_is_accepted(requirement: str) -> None:
    assert parse(matrix(f'requirements: ["{requirement}"]').encode(), "m.yaml").environments["np"].requirements


@pytest.mark.parametrize("character", ["\\n", "\\r", "\\t", "\\N", "\\L", "\\P", "\\u202e", "\\u2066"])
@pytest.mark.parametrize(
    "body",
    [
        *('lock: a, note: "x{}y"', 'lock: "x{}y"', 'base: "x{}y", lock: a', 'requirements: ["numpy{}-e /path"]'),
        *(
            'lock: a, cuda: "9{}0"',
            'lock: a, cudnn: "9{}0"',
            'lock: a, index: "https://x{}y"',
            'lock: a, find_links: "https://x{}y"',
        ),
    ],
)
def test_a_text_has_no_control_character(body: str, character: str) -> None:
    message = refusal(matrix(body.format(character)))
    assert "has a line break" in message or "has the control character U+" in message


@pytest.mark.parametrize(
    "key", ['presets: {"a\\nb": {select: [rnn-step/*]}}', 'exclude: [{select: "*", reason: "a\\tb"}]']
)
def test_names_and_reasons_have_no_control_character_either(key: str) -> None:
    assert "has " in refusal(matrix("lock: a") + key + "\n")


@pytest.mark.parametrize(
    "address", ["https://x --trusted-host y", "https://x'", 'https://x\\"', "https://x\\\\", "https://${HOME}/"]
)
def test_an_address_has_nothing_that_a_line_of_a_lock_would_read_otherwise(address: str) -> None:
    assert "has a character that an address cannot have" in refusal(
        matrix(f'requirements: [numpy], index: "{address}"')
    )


@pytest.mark.parametrize("lock", ["/dev/zero", "/etc/shadow", "../x", "a/../../x", ".", "./", "a/.."])
def test_a_lock_is_below_the_folder_of_the_matrix(lock: str) -> None:
    assert "below the matrix file's folder" in refusal(matrix(f'lock: "{lock}"'))


def test_a_lock_has_names_that_a_file_system_takes() -> None:
    assert "a name of more than 255 bytes" in refusal(matrix(f"lock: {'a' * 256}"))
    assert "more than 1000 characters" in refusal(matrix(f"lock: {'a' * 5000}"))
    assert "a name of more than 255 bytes" in refusal(matrix('lock: "{}"'.format("\\xE9" * 128)))


def test_a_version_of_python_has_few_digits() -> None:
    assert "python must be a version" in refusal(matrix("lock: a").replace("3.11", "3.111"))


def loaded_message(folder: Path, body: str) -> str:
    path = folder / "matrix.yaml"
    path.write_text(matrix(body))
    with pytest.raises(MatrixError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.where is not None
    assert (problem.where.file, problem.where.line) == (str(path), LINE)
    assert problem.hint
    return problem.message


def test_a_lock_that_exists_is_a_regular_file_inside(tmp_path: Path) -> None:
    folder = tmp_path / "matrix"
    folder.mkdir()
    (tmp_path / "outside.txt").touch()
    (folder / "folder").mkdir()
    (folder / "outside").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "fifo")
    assert loaded_message(folder, "lock: folder") == "the lock folder is a folder"
    assert loaded_message(folder, "lock: fifo") == "the lock fifo is not a regular file"
    for lock in ("outside", "up/outside.txt", "up/missing.txt", "zero"):
        assert loaded_message(folder, f"lock: {lock}") == f"the lock {lock} is outside of {folder}"
    assert loaded_message(folder, "lock: circle")
    assert loaded_message(folder, "lock: fifo/x").startswith("the lock fifo/x cannot be read")


def test_an_unreadable_lock_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lock.txt").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    assert "permission denied" in loaded_message(tmp_path, "lock: lock.txt")


def test_a_lock_inside_may_be_a_link_or_missing(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "one.txt").touch()
    (tmp_path / "two.txt").symlink_to("locks/one.txt")
    for lock in ("two.txt", "locks/one.txt", "locks/missing.txt", "missing/missing.txt"):
        (tmp_path / "matrix.yaml").write_text(matrix(f"lock: {lock}"))
        assert load(tmp_path / "matrix.yaml").environments["np"].lock == lock


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "large"])
def test_a_matrix_file_is_a_regular_file_of_bounded_size(tmp_path: Path, kind: str) -> None:
    path = Path(kind) if kind.startswith("/") else tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        path.write_bytes(b"#" * (256 * 1024 + 1))
    with pytest.raises(MatrixError, match=r"not a regular file|larger than") as caught:
        load(path)
    assert caught.value.problems[0].hint


def test_the_place_of_a_value_is_known_after_loading(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(matrix("requirements: [numpy], lock: here.txt"))
    where = position(path, ("environments", "np", "lock"))
    assert where.text[where.column - 1 :].startswith("here.txt")
    assert position(path, ("environments", "np", "variants", "cpu", "lock")).line == LINE


@pytest.mark.parametrize(
    "select",
    [
        *(
            "[]",
            '["asr-lstm/*"]',
            '[{cases: ["!*"]}]',
            '[{implementations: ["cudnn-*"]}]',
            "[{phases: [backward-weights]}]",
        ),
        *(
            "[rnn-step/*/gradient]",
            "[{precisions: [fp16]}]",
            '[{environments: ["!np"]}]',
        ),
    ],
)
def test_a_preset_that_selects_nothing_of_the_matrix_is_refused(select: str) -> None:
    message = refusal(matrix("lock: a") + f"presets: {{p: {{select: {select}}}}}\n")
    assert message == "the preset p selects no test"


@pytest.mark.parametrize(
    "select",
    ["[rnn-step/*]", "[{devices: [cuda]}]", "[rnn-step/*/train]", "[{phases: [gradient]}]", "['*', asr-lstm/*]"],
)
def test_a_preset_that_selects_cells_is_accepted_whatever_the_machine_has(select: str) -> None:
    parse((matrix("lock: a") + f"presets: {{p: {{select: {select}}}}}\n").encode(), "m.yaml")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (f"measure: {{rounds: {10**400}}}", "rounds must be at most 1,000,000"),
        (f"measure: {{max_rounds: {10**7}}}", "max_rounds must be at most 1,000,000"),
        ("measure: {seconds: 1.0e+308}", "seconds must be at most 100,000,000"),
        ("measure: {timeout: 1.0e+9}", "timeout must be at most 100,000,000"),
        (f"gpu: {{clocks: {10**400}}}", "clocks must be one of"),
    ],
)
def test_a_number_is_one_that_can_be_computed_with(key: str, message: str) -> None:
    assert refusal(matrix("lock: a") + key + "\n", hint=False).startswith(message)
    assert refusal(matrix(f"lock: a, disk_bytes: {10**400}"), hint=False).startswith("disk_bytes must be at most")
