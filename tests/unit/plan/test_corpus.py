"""A user's text as the words of a language model."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from runner.core.errors import UsageError
from runner.core.model import Corpus, Plan, Request
from runner.harness import cases
from runner.matrix import parse
from runner.plan import corpus
from runner.plan.corpus import read, with_corpus, with_words
from runner.plan.planner import plan
from tests.support.networks import NETWORKS

MODEL = dict(NETWORKS["lm-lstm/lm-small"], steps=2, batch=2, vocabulary=4, classes=4)


def numbers(text: str, **sizes: int) -> list[int]:
    words: list[int] = with_words({**MODEL, **sizes}, text)["words"]
    return words


def test_a_word_s_number_is_its_rank_and_equals_go_by_the_alphabet() -> None:
    assert numbers("b a b c b a", vocabulary=3) == [0, 1, 0, 2, 0, 1]
    assert numbers("d c b a d a", vocabulary=4) == [1, 3, 2, 0, 1, 0]


def test_a_line_ends_with_a_word_of_its_own() -> None:
    assert numbers("a\na\n\na\n", vocabulary=2) == [1, 0, 1, 0, 0, 1]  # <eos> is the most frequent
    assert numbers("a a\r\na a\r\n", vocabulary=2) == [0, 0, 1, 0, 0, 1]
    assert numbers("a a\na a a", vocabulary=2) == [0, 0, 1, 0, 0, 0]  # the last line does not end


def test_the_last_place_is_for_the_words_that_have_none() -> None:
    assert numbers("a a a b b c d", vocabulary=3) == [0, 0, 0, 1, 1, 2]  # <unk> has place 2, and c is in it
    assert numbers("a a b b c c", vocabulary=3) == [0, 0, 1, 1, 2, 2]  # nothing is left over: no <unk>


def test_a_text_that_has_its_own_unknown_words_keeps_their_rank() -> None:
    assert numbers("<unk> <unk> <unk> a a b c", vocabulary=2) == [0, 0, 0, 1, 1, 0]


def test_the_vocabulary_is_that_of_the_whole_text() -> None:
    assert numbers("a b c d e f z z z", vocabulary=2) == [1] * 6


def test_only_language_models_take_words() -> None:
    for case in NETWORKS.values():
        if not case["vocabulary"]:
            assert with_words(case, "") is case


def test_every_language_model_there_is_can_be_given_a_text() -> None:
    text = "\n".join(" ".join(f"w{number * line % 977}" for number in range(30)) for line in range(200))
    models = [case for case in NETWORKS.values() if case["vocabulary"]]
    assert models
    for case in models:
        with_text = with_words(case, text)
        assert len(with_text["words"]) == case["batch"] * (case["steps"] + 1)
        assert min(with_text["words"]) >= 0
        assert max(with_text["words"]) < case["vocabulary"]
        assert {name: with_text[name] for name in case} == case


def test_each_sample_is_a_piece_of_the_text_and_its_target_is_the_word_after() -> None:
    case = with_words({**MODEL, "vocabulary": 9, "classes": 9}, "a b c d e f g")
    data, _ = cases.materialise(dict(case))
    assert np.array_equal(data["x"], [[0, 3], [1, 4]])
    assert np.array_equal(data["target"], [[1, 4], [2, 5]])


def test_other_words_are_other_data_and_have_another_reference() -> None:
    first, second = (dict(with_words(MODEL, text)) for text in ("a a b b c c", "a b a b c c"))
    assert cases.key(first) != cases.key(second)
    assert cases.digest(*cases.materialise(first)) != cases.digest(*cases.materialise(second))


def test_a_text_that_is_too_short_names_what_is_needed() -> None:
    with pytest.raises(UsageError) as caught:
        with_words(MODEL, "one two\nthree\n")
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines()[0] == (
        "error: the corpus is too short: lm-lstm/lm-small needs 6 words (2 x 3), it has 5"
    )


def test_a_file_is_known_by_its_name_and_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(b"\xef\xbb\xbfna\xc3\xafve\n")
    corpus = read(path)
    assert (corpus.name, corpus.text) == ("own.txt", "na\u00efve\n")
    assert corpus.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert str(tmp_path) not in repr(corpus)


def test_a_file_that_is_not_there_or_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(UsageError, match="cannot read the corpus") as caught:
            read(path)
        assert caught.value.exit_code == 2


def test_a_file_that_is_not_utf_8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(UsageError, match="is not UTF-8: line 2: ") as caught:
        read(path)
    assert caught.value.exit_code == 2


TEXT = Corpus(name="own.txt", digest="sha256:ab", text="a b c d\n" * 500)


def planned(corpus: Corpus | None, workload: str = "lm-lstm") -> Plan:
    text = f"version: 1\nworkloads: {{{workload}: {{}}}}\nenvironments:\n"
    text += '  torch-2.x: {framework: torch, release: "2.*", image: x}\n'
    return plan(parse(text.encode(), "m.yaml"), Request(environments=("torch-2.x",), corpus=corpus), {})


def test_the_planned_blocks_of_language_models_carry_the_words_and_what_they_are_from() -> None:
    specs = {block.case_id: block.spec for block in planned(TEXT).blocks}
    assert specs["lm-lstm/lm-small"]["words"] == with_words(NETWORKS["lm-lstm/lm-small"], TEXT.text)["words"]
    assert specs["lm-lstm/lm-small"]["corpus"] == {"name": "own.txt", "digest": "sha256:ab"}
    assert specs["lm-lstm/template-2x64"] == NETWORKS["lm-lstm/template-2x64"]
    assert {block.case_id: block.spec for block in planned(None).blocks} == {name: NETWORKS[name] for name in specs}
    assert with_corpus(MODEL, None) is MODEL


def test_a_corpus_that_nothing_would_learn_is_refused() -> None:
    with pytest.raises(UsageError, match="--corpus is for language models, and none is selected"):
        planned(TEXT, "rnn-step")


def test_a_corpus_is_a_regular_file_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_text("a b c")
    monkeypatch.setattr(corpus, "CORPUS_BYTES", 4)
    for path, reason in (
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "fifo", "not a regular file"),
        (tmp_path / "large", "larger than 4 bytes"),
        (tmp_path, "a folder"),
        (Path("a\0b"), "null byte"),
    ):
        with pytest.raises(UsageError, match=f"cannot read the corpus .*: .*{reason}") as caught:
            read(path)
        assert caught.value.problems[0].hint
