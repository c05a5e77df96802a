"""A user's own text as the words of a language model, instead of words drawn at random."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, UsageError
from runner.core.model import Corpus

END, UNKNOWN = "<eos>", "<unk>"  # as in the Penn Treebank files of Mikolov


def read(path: Path) -> Corpus:
    """Return the text in a file, with its digest; the file's name is kept, its folder is not.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(Problem(f"the corpus {path} cannot be read: {error.strerror}")) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = f"`iconv -f LATIN1 -t UTF-8 {path}` turns Latin-1 into UTF-8"
        raise UsageError(Problem(f"the corpus {path} is not UTF-8: line {line}: {error.reason}", hint=hint)) from error
    return Corpus(name=path.name, digest=f"sha256:{hashlib.sha256(content).hexdigest()}", text=text)


def given(case: Mapping[str, Any], corpus: Corpus | None) -> Mapping[str, Any]:
    """Return a language model's case with the words of a corpus, and ``corpus``: its name and digest for the record.

    Any other case is returned as it is, and every case where there is no corpus.

    Raises:
        UsageError: the text is too short.
    """
    if corpus is None or not case.get("vocabulary"):
        return case
    return {**with_words(case, corpus.text), "corpus": {"name": corpus.name, "digest": corpus.digest}}


def with_words(case: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """Return a language model's case with the words of a text; any other case as it is.

    Words are what stands between white space, with ``<eos>`` at the end of each line, as TensorFlow's PTB reader has
    it (models/tutorials/rnn/ptb/reader.py). The vocabulary are the case's ``vocabulary`` most frequent words of the
    whole text, of equally frequent ones those that sort first; where there are more, what is left is ``<unk>``, which
    takes the last place unless it is a frequent word itself. A word's number is its rank.

    Args:
        case: the sizes.
        text: at least B*(T+1) words, B samples of T steps and the word after them.

    Returns:
        The case with ``words``: B*(T+1) numbers in [0, ``vocabulary``), sample after sample; each sample is a piece of
        the text, and the next sample goes on where it ends.

    Raises:
        UsageError: the text is too short.
    """
    if not case.get("vocabulary"):
        return case
    needed = case["batch"] * (case["steps"] + 1)
    words, ranked = _counted(text)
    if len(words) < needed:
        what = f"{case['workload']}/{case['name']} needs {needed} words ({case['batch']} x {case['steps'] + 1})"
        hint = "a line's end counts as a word; name a longer text, or select a smaller case"
        raise UsageError(Problem(f"the corpus is too short: {what}, it has {len(words)}", hint=hint))
    known = _vocabulary(ranked, case["vocabulary"])
    return {**case, "words": [known[word if word in known else UNKNOWN] for word in words[:needed]]}


@cache
def _counted(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a text in order, and the different ones by frequency."""
    words = tuple(text.replace("\n", f" {END} ").split())
    counts = Counter(words)
    return words, tuple(sorted(counts, key=lambda word: (-counts[word], word)))


def _vocabulary(ranked: tuple[str, ...], size: int) -> dict[str, int]:
    """Return word -> number for at most ``size`` words; holds ``<unk>`` where not every word has a number."""
    kept = list(ranked[:size])
    if len(ranked) > size and UNKNOWN not in kept:
        kept[-1] = UNKNOWN
    return {word: number for number, word in enumerate(kept)}
