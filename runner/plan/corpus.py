"""Let language models learn a user's text instead of words drawn at random."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, UsageError
from runner.core.files import read_bounded
from runner.core.model import Corpus

CORPUS_BYTES = 128 << 20  # text8 and enwik8 have 100 MB, http://mattmahoney.net/dc/textdata.html
END, UNKNOWN = "<eos>", "<unk>"  # as in the Penn Treebank files of Mikolov


def read(path: Path) -> Corpus:
    """Return the text of a UTF-8 file with its SHA-256 digest; the file's name is kept, its folder is not.

    Raises:
        UsageError: the file cannot be read, is no regular file, is larger than ``CORPUS_BYTES``, or is not UTF-8.
    """
    try:
        content = read_bounded(path, CORPUS_BYTES)
    except OSError as error:
        message = f"cannot read the corpus {path}: {error.strerror}"
        raise UsageError(Problem(message, hint="name a text file with --corpus FILE")) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = f"`iconv -f LATIN1 -t UTF-8 {path}` converts Latin-1 to UTF-8"
        raise UsageError(Problem(f"the corpus {path} is not UTF-8: line {line}: {error.reason}", hint=hint)) from error
    return Corpus(name=path.name, digest=f"sha256:{hashlib.sha256(content).hexdigest()}", text=text)


def with_corpus(case: Mapping[str, Any], corpus: Corpus | None) -> Mapping[str, Any]:
    """Return a language model's case with the words of a corpus, and its name and digest under ``corpus``.

    Any other case is returned unchanged, and so is every case if there is no corpus.

    Raises:
        UsageError: the text has fewer words than the case needs.
    """
    if corpus is None or not case.get("vocabulary"):
        return case
    return {**with_words(case, corpus.text), "corpus": {"name": corpus.name, "digest": corpus.digest}}


def with_words(case: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """Return a language model's case with the words of a text; any other case unchanged.

    White space separates words, and each line ends with the word ``<eos>``, as in the PTB reader of TensorFlow
    (models/tutorials/rnn/ptb/reader.py). The vocabulary V has the V most frequent words of the entire text; words of
    equal frequency are ordered alphabetically. The number of a word is its rank, from 0. If the text has more than V
    different words, the rest become ``<unk>``, which takes the last number unless it is among the frequent words
    itself.

    Args:
        case: the sizes: B = ``batch``, T = ``steps``, V = ``vocabulary``.
        text: at least B * (T + 1) words: B samples of T steps and the word to predict after them.

    Returns:
        The case with ``words``: B * (T + 1) numbers in [0, V), sample after sample. The samples are consecutive pieces
        of the text.

    Raises:
        UsageError: the text has fewer words.
    """
    if not case.get("vocabulary"):
        return case
    needed = case["batch"] * (case["steps"] + 1)
    words, ranked = _counted(text)
    if len(words) < needed:
        case_id = f"{case['workload']}/{case['name']}"
        message = f"{case_id} needs {needed} words ({case['batch']} x {case['steps'] + 1}), it has {len(words)}"
        hint = "use a longer text, or select a smaller case; the end of a line counts as a word"
        raise UsageError(Problem(f"the corpus is too short: {message}", hint=hint))
    numbers = _vocabulary(ranked, case["vocabulary"])
    return {**case, "words": [numbers[word if word in numbers else UNKNOWN] for word in words[:needed]]}


@cache
def _counted(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a text in order, and the distinct words by descending frequency."""
    words = tuple(text.replace("\n", f" {END} ").split())
    counts = Counter(words)
    return words, tuple(sorted(counts, key=lambda word: (-counts[word], word)))


def _vocabulary(ranked: tuple[str, ...], size: int) -> dict[str, int]:
    """Return word -> number for at most ``size`` words; if some words get no number, ``<unk>`` has one."""
    kept = list(ranked[:size])
    if len(ranked) > size and UNKNOWN not in kept:
        kept[-1] = UNKNOWN
    return {word: number for number, word in enumerate(kept)}
