"""What is said of every kind of mistake in a matrix file, word for word."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.errors import MatrixError
from runner.matrix import Matrix, load, parse

ROOT = Path(__file__).parents[3]

HEAD = """\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-1.0:
    framework: torch
    release: "1.0.0"
"""
GOOD = f"{HEAD}    image: pytorch/pytorch:1.0\n"


def message_of(text: str | bytes) -> str:
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(MatrixError) as caught:
        parse(content, "m.yaml")
    return str(caught.value)


def test_the_shipped_matrix_loads() -> None:
    matrix = load(ROOT / "matrix.yaml")
    assert list(matrix.environments) == [
        *("torch-0.1", "torch-0.2", "torch-0.3", "torch-0.4", "torch-1.0", "torch-1.12", "torch-1.13"),
        *("torch-2.1", "torch-2.4", "torch-2.6", "torch-2.8", "torch-2.10", "torch-2.11", "torch-2.14", "torch-2.x"),
        *("tf-0.8", "tf-1.8", "tf-1.15", "tf-2.15", "tf-2.16", "tf-2.17", "tf-2.18", "tf-2.x"),
        *("theano-0.8", "theano-1.0", "theano-cudnn"),
        *("keras-2.1-tf", "keras-2.1-theano", "keras-3.8", "keras-3", "jax-0.4", "jax", "torch7"),
    ]
    assert matrix.presets["quick"].rounds == 3
    assert matrix.presets["quick"].seconds == 0.6


def test_a_good_file_becomes_a_matrix() -> None:
    matrix = parse(GOOD.encode(), "m.yaml")
    assert matrix.environments["torch-1.0"].image == "pytorch/pytorch:1.0"
    assert matrix.workloads["rnn-step"].phases == ("forward", "train")


def test_windows_line_ends_and_a_byte_order_mark_are_read() -> None:
    assert isinstance(parse(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode(), "m.yaml"), Matrix)


def test_an_alias_stands_for_a_whole_value() -> None:
    text = GOOD.replace("torch-1.0:", "torch-1.0: &it") + "  torch-1.1: *it\n"
    matrix = parse(text.encode(), "m.yaml")
    assert matrix.environments["torch-1.1"] == matrix.environments["torch-1.0"]


def test_both_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = f"{HEAD}    python: 3.10\n    lock: a.txt\nexlcude: []\n"
    assert (
        message_of(text)
        == """\
m.yaml:7:13: error: python must be text, and YAML read a number
    7 |     python: 3.10
      |             ^^^^
hint: put it in quotes: '3.10'

m.yaml:9:1: error: unknown key 'exlcude'
    9 | exlcude: []
      | ^^^^^^^
hint: did you mean 'exclude'?"""
    )


FORM = {
    "an empty file": (
        "",
        """\
m.yaml:1:1: error: the file is empty
hint: start with 'version: 1' and 'environments:'""",
    ),
    "only comments": (
        "# one\n# two\n",
        """\
m.yaml:1:1: error: the file holds only comments
    1 | # one
      | ^
hint: start with 'version: 1' and 'environments:'""",
    ),
    "a list at the top": (
        "- a\n- b\n",
        """\
m.yaml:1:1: error: the matrix must be a mapping, and YAML read a list
    1 | - a
      | ^^^
hint: start with 'version: 1' and 'environments:'""",
    ),
    "not UTF-8": (
        "a: é".encode() + b"\xff",
        """\
m.yaml:1:5: error: byte 0xff is not UTF-8
    1 | a: é\ufffd
      |     ^
hint: save it as UTF-8""",
    ),
    "a control character": (
        "a: 1\nb: \x1b[31m\n",
        """\
m.yaml:2:4: error: the control character U+001B is not allowed
    2 | b: \ufffd[31m
      |    ^
hint: remove it""",
    ),
    "a tab": (
        "a:\n\tb: 1\n",
        """\
m.yaml:2:1: error: a tab cannot indent in YAML
    2 |  b: 1
      | ^
hint: indent with spaces""",
    ),
    "a bracket left open": (
        "a: [1, 2\nb: 3\n",
        """\
m.yaml:1:4: error: what opens here lacks a comma or its ']'
    1 | a: [1, 2
      |    ^
hint: close it with ']'""",
    ),
    "a quote left open": (
        'a: "x\nb: 3\n',
        """\
m.yaml:1:4: error: the quote that opens here is never closed
    1 | a: "x
      |    ^
hint: close it""",
    ),
    "crooked indentation": (
        "a:\n  b: 1\n c: 2\n",
        """\
m.yaml:3:2: error: this does not line up with the lines above
    3 |  c: 2
      |  ^
hint: indent it like its neighbours""",
    ),
    "a colon too many": (
        "a: b: c\n",
        """\
m.yaml:1:5: error: a second ': ' in one line
    1 | a: b: c
      |     ^
hint: put text that holds ': ' in quotes""",
    ),
    "a missing colon": (
        "a: 1\nb\nc: 2\n",
        """\
m.yaml:2:1: error: a key without a colon
    2 | b
      | ^
hint: write key: value""",
    ),
    "two documents": (
        f"{GOOD}---\na: 1\n",
        """\
m.yaml:8:1: error: a second YAML document
    8 | ---
      | ^
hint: keep one document in a file: remove this""",
    ),
    "an unknown alias": (
        "a: *x\n",
        """\
m.yaml:1:4: error: no anchor 'x' stands above this alias
    1 | a: *x
      |    ^
hint: write &x before the value meant""",
    ),
    "an anchor in itself": (
        "a: &a [*a]\n",
        """\
m.yaml:1:4: error: nested more than 40 deep once the aliases are followed
    1 | a: &a [*a]
      |    ^^^^^^^
hint: write the values out""",
    ),
    "other YAML errors": (
        "%YAML 2.0\n---\na: 1\n",
        """\
m.yaml:1:1: error: this is not YAML: found incompatible YAML document (version 1.* is required)
    1 | %YAML 2.0
      | ^
hint: check the quotes, brackets and indentation here""",
    ),
}

CONTENT = {
    "a key given twice": (
        f"{GOOD}    framework: jax\n",
        """\
m.yaml:8:5: error: key 'framework' is given twice
    8 |     framework: jax
      |     ^^^^^^^^^
hint: the first is in line 5""",
    ),
    "a misspelt key, which is not missing as well": (
        GOOD.replace("framework", "framwork").replace("image", "imgae"),
        """\
m.yaml:5:5: error: unknown key 'framwork'
    5 |     framwork: torch
      |     ^^^^^^^^
hint: did you mean 'framework'?

m.yaml:7:5: error: unknown key 'imgae'
    7 |     imgae: pytorch/pytorch:1.0
      |     ^^^^^
hint: did you mean 'image'?""",
    ),
    "an unknown key like no other": (
        f"{GOOD}gpu: {{zzz: 1}}\n",
        """\
m.yaml:8:7: error: unknown key 'zzz'
    8 | gpu: {zzz: 1}
      |       ^^^
hint: known keys: clocks, memory, telemetry""",
    ),
    "a missing key": (
        GOOD.replace('    release: "1.0.0"\n', ""),
        """\
m.yaml:4:3: error: key 'release' is missing in torch-1.0
    4 |   torch-1.0:
      |   ^^^^^^^^^
hint: add release: "1.0.0\"""",
    ),
    "a missing key at the top": (
        GOOD.replace("version: 1\n", ""),
        """\
m.yaml:1:1: error: key 'version' is missing in the matrix
    1 | workloads: {rnn-step: {}}
      | ^^^^^^^^^
hint: add version: 1""",
    ),
    "nothing after the colon": (
        GOOD.replace(' "1.0.0"', ""),
        """\
m.yaml:6:5: error: release must be text, and nothing is written
    6 |     release:
      |     ^^^^^^^
hint: write it in quotes""",
    ),
    "another version": (
        GOOD.replace("version: 1", "version: 2"),
        """\
m.yaml:1:10: error: version must be 1, found 2
    1 | version: 2
      |          ^
hint: write 1""",
    ),
    "a framework's other name": (
        GOOD.replace("framework: torch", "framework: tf"),
        """\
m.yaml:5:16: error: framework cannot be 'tf'
    5 |     framework: tf
      |                ^^
hint: did you mean 'tensorflow'?""",
    ),
    "an unknown workload": (
        GOOD.replace("rnn-step", "rnn-stpe"),
        """\
m.yaml:2:13: error: unknown workload 'rnn-stpe'
    2 | workloads: {rnn-stpe: {}}
      |             ^^^^^^^^
hint: did you mean 'rnn-step'?""",
    ),
    "an unknown phase": (
        f"{GOOD}presets: {{a: {{select: ['*'], phases: [forwrd]}}}}\n",
        """\
m.yaml:8:39: error: no phase matches 'forwrd'
    8 | presets: {a: {select: ['*'], phases: [forwrd]}}
      |                                       ^^^^^^
hint: did you mean 'forward'?""",
    ),
    "text where a list is needed": (
        f'{GOOD}presets: {{a: {{select: "*"}}}}\n',
        """\
m.yaml:8:23: error: select must be a list, and YAML read text
    8 | presets: {a: {select: "*"}}
      |                       ^^^
hint: put it in brackets: ["*"]""",
    ),
    "a wrong key in a preset's selector": (
        f"{GOOD}presets: {{a: {{select: [{{cases: ['*'], environment: [np]}}]}}}}\n",
        """\
m.yaml:8:39: error: unknown key 'environment'
    8 | presets: {a: {select: [{cases: ['*'], environment: [np]}]}}
      |                                       ^^^^^^^^^^^
hint: did you mean 'environments'?""",
    ),
    "a case pattern of a preset that matches nothing": (
        f"{GOOD}presets: {{a: {{select: [rnn-step/lstm-b32-h51]}}}}\n",
        """\
m.yaml:8:24: error: no case matches 'rnn-step/lstm-b32-h51'
    8 | presets: {a: {select: [rnn-step/lstm-b32-h51]}}
      |                        ^^^^^^^^^^^^^^^^^^^^^
hint: did you mean 'rnn-step/lstm-b32-h512'?""",
    ),
    "an environment of a preset that does not exist": (
        f"{GOOD}presets: {{a: {{select: [{{environments: [torch-1.00]}}]}}}}\n",
        """\
m.yaml:8:40: error: no environment matches 'torch-1.00'
    8 | presets: {a: {select: [{environments: [torch-1.00]}]}}
      |                                        ^^^^^^^^^^
hint: did you mean 'torch-1.0'?""",
    ),
    "an implementation of a preset that does not exist": (
        f"{GOOD}presets: {{a: {{select: [{{implementations: ['!nn-lstn']}}]}}}}\n",
        """\
m.yaml:8:43: error: no implementation matches 'nn-lstn'
    8 | presets: {a: {select: [{implementations: ['!nn-lstn']}]}}
      |                                           ^^^^^^^^^^
hint: did you mean 'nn-lstm'?""",
    ),
    "an environment of an exclusion that does not exist": (
        f"{GOOD}exclude: [{{select: torch-1.00/*, reason: x}}]\n",
        """\
m.yaml:8:20: error: no environment matches 'torch-1.00'
    8 | exclude: [{select: torch-1.00/*, reason: x}]
      |                    ^^^^^^^^^^^^
hint: did you mean 'torch-1.0'?""",
    ),
    "an implementation of an exclusion that does not exist": (
        f"{GOOD}exclude: [{{select: torch-*/nn-lstn/rnn-step/*/train/fp32, reason: x}}]\n",
        """\
m.yaml:8:20: error: no implementation of torch-* matches 'nn-lstn'
    8 | exclude: [{select: torch-*/nn-lstn/rnn-step/*/train/fp32, reason: x}]
      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean 'nn-lstm'?""",
    ),
    "a case of an exclusion that does not exist": (
        f"{GOOD}exclude: [{{select: torch-1.0/nn-lstm/rnn-step/lstm-b32-h51/*, reason: x}}]\n",
        """\
m.yaml:8:20: error: no case of rnn-step matches 'lstm-b32-h51'
    8 | exclude: [{select: torch-1.0/nn-lstm/rnn-step/lstm-b32-h51/*, reason: x}]
      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean 'lstm-b32-h512'?""",
    ),
    "an exclusion without a * that is shorter than a cell id": (
        f"{GOOD}exclude: [{{select: torch-1.0, reason: x}}]\n",
        """\
m.yaml:8:20: error: 'torch-1.0' has 1 of the 6 parts of a test id
    8 | exclude: [{select: torch-1.0, reason: x}]
      |                    ^^^^^^^^^
hint: write environment/implementation/workload/case/phase/precision; a * also matches several parts""",
    ),
    "an unknown word behind a * of an exclusion": (
        f"{GOOD}exclude: [{{select: '*/trian/fp32', reason: x}}]\n",
        """\
m.yaml:8:20: error: no part of a test id matches 'trian'
    8 | exclude: [{select: '*/trian/fp32', reason: x}]
      |                    ^^^^^^^^^^^^^^
hint: did you mean 'train'?""",
    ),
    "text where a number is needed": (
        f'{GOOD}measure: {{seconds: "3"}}\n',
        """\
m.yaml:8:20: error: seconds must be a number, and YAML read text
    8 | measure: {seconds: "3"}
      |                    ^^^
hint: write it without quotes: 3""",
    ),
    "numbers out of bounds": (
        f"{GOOD}measure:\n  rounds: 0\n  timeout: .inf\n  threads: 2.5\n",
        """\
m.yaml:9:11: error: rounds must be at least 1, found 0
    9 |   rounds: 0
      |           ^

m.yaml:10:12: error: timeout must be a finite number, found .inf
   10 |   timeout: .inf
      |            ^^^^

m.yaml:11:12: error: threads must be a whole number, found 2.5
   11 |   threads: 2.5
      |            ^^^""",
    ),
    "clocks that are no word and no number": (
        f"{GOOD}gpu: {{clocks: bas}}\n",
        """\
m.yaml:8:15: error: clocks must be one of base, max, leave, or a whole number above 0, found bas
    8 | gpu: {clocks: bas}
      |               ^^^""",
    ),
    "an environment id in capitals": (
        GOOD.replace("torch-1.0", "Torch_1"),
        """\
m.yaml:4:3: error: 'Torch_1' is not an environment id
    4 |   Torch_1:
      |   ^^^^^^^
hint: small letters, then parts after dashes, such as torch-1.0""",
    ),
    "a number as a key": (
        f"{GOOD}  1.0: {{}}\n",
        """\
m.yaml:8:3: error: a key must be text, and YAML read a number
    8 |   1.0: {}
      |   ^^^
hint: put it in quotes: '1.0'""",
    ),
    "a list as a key": (
        f"{GOOD}  ? [a]\n  : x\n",
        """\
m.yaml:8:5: error: a key must be text, not a list or a mapping
    8 |   ? [a]
      |     ^^^
hint: remove the brackets""",
    ),
    "a merge key": (
        f"{GOOD}    <<: {{note: x}}\n",
        """\
m.yaml:8:5: error: merge keys (<<) are not supported
    8 |     <<: {note: x}
      |     ^^
hint: write the keys out, or alias the whole value""",
    ),
    "a tag that would run a program": (
        f"{GOOD}    note: !!python/object/apply:os.system [ls]\n",
        """\
m.yaml:8:11: error: tag '!!python/object/apply:os.system' is not allowed
    8 |     note: !!python/object/apply:os.system [ls]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write the plain value, without a tag""",
    ),
    "a date where text is needed": (
        f"{GOOD}    note: 2020-01-01\n",
        """\
m.yaml:8:11: error: note must be text, and YAML read a date
    8 |     note: 2020-01-01
      |           ^^^^^^^^^^
hint: put it in quotes: '2020-01-01'""",
    ),
    "an image and a lock": (
        f"{GOOD}    lock: a.txt\n",
        """\
m.yaml:8:5: error: torch-1.0 has both an image and a lock
    8 |     lock: a.txt
      |     ^^^^
hint: an image is pulled as it is: remove one""",
    ),
    "an environment of nothing": (
        HEAD,
        """\
m.yaml:4:3: error: torch-1.0 needs an image, or a python and what to install
    4 |   torch-1.0:
      |   ^^^^^^^^^
hint: add image: or python:""",
    ),
    "a rule between keys, told although a key is wrong as well": (
        f"{HEAD}    python: '3.6'\n    note: 1\n",
        """\
m.yaml:7:5: error: torch-1.0 does not say what to install
    7 |     python: '3.6'
      |     ^^^^^^
hint: add lock:, requirements: or variants:

m.yaml:8:11: error: note must be text, and YAML read a number
    8 |     note: 1
      |           ^
hint: put it in quotes: '1'""",
    ),
    "an address that is none": (
        f"{GOOD}    index: ftp://x\n",
        """\
m.yaml:8:12: error: index must be an http:// or https:// address, found ftp://x
    8 |     index: ftp://x
      |            ^^^^^^^
hint: write an address such as https://example.org/wheels""",
    ),
    "a mistake behind an anchor, told once": (
        f"{GOOD}  a: &x {{framework: torch, release: 1, image: x}}\n  b: *x\n",
        """\
m.yaml:8:37: error: release must be text, and YAML read a number
    8 |   a: &x {framework: torch, release: 1, image: x}
      |                                     ^
hint: put it in quotes: '1'""",
    ),
}


@pytest.mark.parametrize(("text", "expected"), FORM.values(), ids=FORM.keys())
def test_a_mistake_of_form_is_told_with_its_place(text: str | bytes, expected: str) -> None:
    assert message_of(text) == expected


@pytest.mark.parametrize(("text", "expected"), CONTENT.values(), ids=CONTENT.keys())
def test_a_mistake_of_content_is_told_with_its_place(text: str, expected: str) -> None:
    assert message_of(text) == expected


@pytest.mark.parametrize(
    "glob",
    [
        "torch-1.0/*",
        "*/train/fp32",
        "*fp32",
        "torch*lstm*",
        "*/nn-lstm/*",
        "torch-?.0/nn-lstm/rnn-step/lstm-b32-h512/train/fp32",
        "*/*/asr-lstm/*-ctc-*/*",
        "torch-1.0/matmul/deepbench-gemm/*/forward+published/int8",
    ],
)
def test_an_exclusion_that_matches_a_possible_cell_is_accepted(glob: str) -> None:
    matrix = parse(f"{GOOD}exclude: [{{select: '{glob}', reason: x}}]\n".encode(), "m.yaml")
    assert matrix.exclude[0].select == glob


@pytest.mark.parametrize("glob", ["torch-1.0/lstm-cell/*", "*/lm-lstm/*/forwrd/*", "*/rnn-step/ptb-large/*", "!torch*"])
def test_an_exclusion_that_matches_no_possible_cell_is_refused(glob: str) -> None:
    assert "matches" in message_of(f"{GOOD}exclude: [{{select: '{glob}', reason: x}}]\n")


def test_an_alias_bomb_is_refused_by_counting() -> None:
    levels = "".join(f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    began = time.thread_time()  # another process may have the CPU
    message = message_of(f"k0: &a0 [x]\n{levels}").splitlines()[0]
    assert message == "m.yaml:5:5: error: more than 10,000 values once the aliases are followed"
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 30_000 + "a", "? " * 30_000, "{a: " * 5_000])
def test_deep_nesting_is_refused_before_it_can_overflow_anything(text: str) -> None:
    assert "error: nested more than 40 deep" in message_of(text)


def test_aliases_nested_deep_are_refused() -> None:
    chain = "".join(f"k{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))
    assert "nested more than 40 deep once the aliases are followed" in message_of(f"k0: &a0 [x]\n{chain}")


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    assert message_of(b"#" * 300_000) == (
        "error: m.yaml is larger than 256 KiB, too large for a matrix file\n"
        "hint: name the right file with --matrix FILE"
    )


def test_a_missing_file_is_told_with_the_option_that_names_another(tmp_path: Path) -> None:
    path = tmp_path / "no.yaml"
    with pytest.raises(MatrixError) as caught:
        load(path)
    assert str(caught.value) == f"error: there is no {path}\nhint: name the matrix with --matrix FILE"
    assert caught.value.exit_code == 2


def test_a_directory_is_told_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as caught:
        load(tmp_path)
    hint = "name another file with --matrix FILE"
    assert str(caught.value) == f"error: cannot read {tmp_path}: it is a folder\nhint: {hint}"


def test_a_hundred_environments_load_in_no_time() -> None:
    entries = "".join(
        f'  torch-1.{n}:\n    framework: torch\n    release: "1.{n}.0"\n    python: "3.6"\n'
        "    lock: docker/locks/torch.txt\n    requirements: [torch, numpy]\n    cuda: '9.0'\n    cudnn: '7.4'\n"
        for n in range(100)
    )
    content = f"version: 1\nworkloads: {{rnn-step: {{}}}}\nenvironments:\n{entries}".encode()
    times = []
    for _ in range(5):
        began = time.thread_time()
        parse(content, "m.yaml")
        times.append(time.thread_time() - began)
    assert min(times) < 0.25  # about 0.02 s with libyaml, 0.15 s without it


def only_matrix_errors(content: bytes) -> None:
    try:
        parse(content, "m.yaml")
    except MatrixError as error:
        problems = [str(problem) for problem in error.problems]
        assert problems
        assert len(set(problems)) == len(problems)
        places = [problem.where.line for problem in error.problems if problem.where]
        assert places == sorted(places)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_a_matrix_error(content: bytes) -> None:
    only_matrix_errors(content)


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_arbitrary_text_raises_nothing_but_a_matrix_error(text: str) -> None:
    only_matrix_errors(text.encode(errors="replace"))


MARKS = ("&a", "*a", "<<", "~", "!!int", "!!set", "!", "?", "-", "[", "]", "{", "}", ",", "''", "1e9", '"\\U00110000"')
WORDS = [*GOOD.replace(":", " : ").replace("\n", " \n ").split(" "), *MARKS]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.integers(0, len(GOOD)))
def test_a_mangled_matrix_raises_nothing_but_a_matrix_error(words: list[str], where: int) -> None:
    only_matrix_errors((GOOD[:where] + " ".join(words) + GOOD[where:]).encode())


@settings(max_examples=200)
@given(
    st.recursive(
        st.sampled_from(["1", "x", "~", "1.5", "2020-01-01", "no", "''"]),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
            st.dictionaries(
                st.sampled_from(["cases", "select", "cpu", "framework", "lock", "x"]), inner, max_size=3
            ).map(lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"),
        ),
        max_leaves=8,
    ),
    st.sampled_from(["presets", "gpu", "measure", "exclude", "environments", "workloads", "version"]),
)
def test_a_value_of_any_shape_raises_nothing_but_a_matrix_error(value: str, key: str) -> None:
    only_matrix_errors(
        "\n".join(line for line in GOOD.splitlines() if not line.startswith(key)).encode()
        + f"\n{key}: {value}\n".encode()
    )
    only_matrix_errors(f"{key}: {{a: {value}}}\n".encode())
