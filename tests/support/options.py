"""Options of commands that tests start."""

from collections.abc import Sequence

SINGLE = ("--rounds", "--seconds")


def with_last_values(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command in which a later value of an option replaces an earlier one.

    A command line takes such an option once. Tests add other values to the options that they share.

    >>> with_last_values(["run", "--seconds", "1", "--pin", "--seconds", "2"])
    ('run', '--pin', '--seconds', '2')
    """
    last = {word: index for index, word in enumerate(words) if word in SINGLE}
    earlier = {index for index, word in enumerate(words) if index != last.get(word, index)}
    return tuple(word for index, word in enumerate(words) if not {index, index - 1} & earlier)
