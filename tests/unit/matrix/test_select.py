"""Which environments and cells a selector names."""

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.matrix import Matrix, choose_cells, select_environments, split_selectors
from runner.matrix.fields import FRAMEWORKS
from runner.matrix.select import release_key

RELEASES = {
    "torch-0.1": ("torch", "0.1.12_2"),
    "torch-0.4": ("torch", "0.4.0"),
    "torch-1.0": ("torch", "1.0.0"),
    "torch-1.12": ("torch", "1.12.1"),
    "torch-2.x": ("torch", "2.*"),
    "tf-1.8": ("tensorflow", "1.8.0"),
    "tf-2.x": ("tensorflow", "2.*"),
    "np-canary": ("numpy", "master"),
}
MATRIX = Matrix.model_validate(
    {
        "version": 1,
        "workloads": {},
        "environments": {
            name: {"framework": framework, "release": release, "image": "x"}
            for name, (framework, release) in RELEASES.items()
        },
    }
)


def test_no_selector_selects_all_in_the_order_of_the_file() -> None:
    assert select_environments(MATRIX, []) == tuple(RELEASES)


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ("torch-0.4", "torch-0.4"),
        ("tf-1.8 torch-0.4", "torch-0.4 tf-1.8"),
        ("torch-1.*", "torch-1.0 torch-1.12"),
        ("t*-2.x", "torch-2.x tf-2.x"),
        ("torch>=1.0,<2", "torch-1.0 torch-1.12"),
        ("torch >= 1.0, < 2", "torch-1.0 torch-1.12"),
        ("pytorch<1", "torch-0.1 torch-0.4"),
        ("torch>2.99", "torch-2.x"),
        ("torch<3,>=2", "torch-2.x"),
        ("torch==1", "torch-1.0"),
        ("torch==1.*", "torch-1.0 torch-1.12"),
        ("torch<=1.0.*,>0.4", "torch-1.0"),
        ("torch!=1.*", "torch-0.1 torch-0.4 torch-2.x"),
        ("torch==0.1.12.post2", "torch-0.1"),
        ("torch>0.1.12,<0.2", "torch-0.1"),
        ("tf>=1", "tf-1.8 tf-2.x"),
        ("framework:tf", "tf-1.8 tf-2.x"),
        ("framework:TensorFlow", "tf-1.8 tf-2.x"),
        ("framework:numpy", "np-canary"),
        ("torch-2.x/nn-lstm/*", "torch-2.x"),
        ("*/nn-lstm/* !torch*", "tf-1.8 tf-2.x np-canary"),
        ("torch-* !torch-1.12", "torch-0.1 torch-0.4 torch-1.0 torch-2.x"),
        ("!framework:torch !np-canary", "tf-1.8 tf-2.x"),
        ("torch-1.0 !torch-1.0/nn-lstm/*", "torch-1.0"),
    ],
)
def test_a_selector_names_environments(selectors: str, expected: str) -> None:
    words = [selectors] if ", " in selectors else selectors.split()
    assert select_environments(MATRIX, words) == tuple(expected.split())


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("torch-0.5", "error: 'torch-0.5' names no environment\nhint: did you mean 'torch-0.4'?"),
        ("!torhc-1.0", "error: 'torhc-1.0' names no environment\nhint: did you mean 'torch-1.0'?"),
        ("torch", "error: 'torch' names no environment\nhint: for all of its releases write framework:torch"),
        ("torch>=3", f"error: 'torch>=3' names no environment\nhint: environments: {', '.join(RELEASES)}"),
        ("troch>=1", "error: 'troch>=1' names no environment\nhint: did you mean 'torch>=1'?"),
        ("nunpy==1.26.4", "error: 'nunpy==1.26.4' names no environment\nhint: did you mean 'numpy==1.26.4'?"),
        (
            "Pytorhc==2.9@py3.9",
            "error: 'Pytorhc==2.9@py3.9' names no environment\nhint: did you mean 'pytorch==2.9@py3.9'?",
        ),
        ("xyz==1.0", f"error: 'xyz==1.0' names no environment\nhint: frameworks: {', '.join(sorted(FRAMEWORKS))}"),
        ("torhc==2/a/*", "error: 'torhc==2/a/*' names no environment\nhint: did you mean 'torch==2/a/*'?"),
        ("framework:mx", "error: 'framework:mx' names no environment\nhint: frameworks: numpy, tensorflow, torch"),
        ("tf-1.9/*/train", "error: 'tf-1.9/*/train' names no environment\nhint: did you mean 'tf-1.8'?"),
        ("", f"error: '' names no environment\nhint: environments: {', '.join(RELEASES)}"),
    ],
)
def test_a_selector_that_names_nothing_is_told_with_the_nearest_id(selector: str, expected: str) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        select_environments(MATRIX, [selector])
    assert str(caught.value) == expected
    assert caught.value.exit_code == 3


def test_taking_everything_out_is_an_error() -> None:
    with pytest.raises(NothingSelectedError, match=r"no environment remains of tf-1.8 !tf-\*"):
        select_environments(MATRIX, ["tf-1.8", "!tf-*"])


@pytest.mark.parametrize("selector", ["torch>=", "torch>=x", "torch=1.0", "torch~=1.0", "torch>=1,", "torch><1"])
def test_a_range_that_cannot_be_read_is_a_usage_error(selector: str) -> None:
    with pytest.raises(UsageError, match=r"cannot read .* in the range") as caught:
        select_environments(MATRIX, [selector])
    assert caught.value.problems[0].hint == "write a range such as 'torch>=1.0,<2'"


def test_releases_are_ordered_as_they_came_out() -> None:
    releases = [
        "0.1.12",
        "0.1.12_2",
        "0.2.0.post3",
        "0.4.0",
        "1.0.dev3",
        "1.0a2",
        "1.0b1",
        "1.0rc1",
        "1.0.0",
        "1.0.*",
        "1.2",
        "1.10.0",
        "2.0",
        "2.99.1",
        "2.*",
        "3",
        "384.81",
        "384.130",
    ]
    keys = [key for release in releases if (key := release_key(release))]
    assert len(keys) == len(releases)
    assert sorted(keys) == keys


@pytest.mark.parametrize(
    ("first", "same"), [("1", "1.0.0"), ("0.1.12_2", "0.1.12.post2"), ("2.0+cu118", "2.0"), ("v1.2", "1.2")]
)
def test_spellings_of_one_release_are_equal(first: str, same: str) -> None:
    assert release_key(first) == release_key(same)


def test_a_release_without_numbers_has_no_place_in_the_order() -> None:
    assert release_key("master") is None


@pytest.mark.parametrize(
    ("glob", "full_glob"),
    [
        ("torch-2.x/nn-lstm", "torch-2.x/nn-lstm/*"),
        ("torch-2.x/nn-lstm/", "torch-2.x/nn-lstm/*"),
        ("torch-2.x/nn-lstm/*", "torch-2.x/nn-lstm/*"),
        ("torch-2.x/nn-*", "torch-2.x/nn-*"),
        ("!tf-*/*/rnn-step", "!tf-*/*/rnn-step/*"),
        ("a/b/c/d/train/fp32", "a/b/c/d/train/fp32"),
    ],
)
def test_a_glob_of_fewer_parts_is_made_to_match_whole_ids(glob: str, full_glob: str) -> None:
    assert split_selectors(["torch-*", glob, "!tf-1.8"]) == (("torch-*", "!tf-1.8"), (full_glob,))


def test_environment_selectors_and_cell_globs_add_up() -> None:
    chosen = choose_cells(MATRIX, ["torch-1.0", "torch-2.x/nn-lstm", "!*/*/*/*/compile"])
    assert chosen("torch-1.0/lstm-cell-basic/rnn-step/a/train/fp32")
    assert chosen("torch-2.x/nn-lstm/rnn-step/a/train/fp32")
    assert not chosen("torch-2.x/nn-lstm/rnn-step/a/compile/fp32")
    assert not chosen("torch-2.x/lstm-cell-basic/rnn-step/a/train/fp32")
    assert not chosen("tf-1.8/lstm-cell/rnn-step/a/train/fp32")


def test_cell_globs_alone_choose_nothing_else() -> None:
    chosen = choose_cells(MATRIX, ["*/nn-lstm/*", "!torch-0.4"])
    assert chosen("torch-1.0/nn-lstm/rnn-step/a/train/fp32")
    assert not chosen("torch-0.4/nn-lstm/rnn-step/a/train/fp32")
    assert not chosen("torch-1.0/lstm-cell-basic/rnn-step/a/train/fp32")


def test_an_exclusion_alone_keeps_the_rest() -> None:
    chosen = choose_cells(MATRIX, ["!torch-1.0/nn-lstm"])
    assert chosen("torch-1.0/lstm-cell-basic/rnn-step/a/train/fp32")
    assert not chosen("torch-1.0/nn-lstm/rnn-step/a/train/fp32")
