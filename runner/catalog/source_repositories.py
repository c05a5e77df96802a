"""Where the source of a package is, and which revision of it a release was made from.

To add a package, add a line to ``REPOSITORIES``.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from packaging.version import Version

DIGITS = 10
"""Of a commit, as reports and links name it."""
_COMMIT = re.compile(r"(?:.*-g)?([0-9a-f]{7,40})")
"""A commit, or ``git describe``'s text that ends in one."""
_RELEASE = re.compile(r"([0-9]+(?:\.[0-9]+)*)(?:[+_].*|\.post[0-9]+.*)?")


class Repository(NamedTuple):
    """A repository on GitHub.

    Attributes:
        path: its owner and name.
        tag: what it calls a release, with ``{}`` for the version.
        prefix_since: the first version with that tag; earlier ones are tagged by their bare version. Empty for all.
    """

    path: str
    tag: str = "v{}"
    prefix_since: str = ""


REPOSITORIES: Mapping[str, Repository] = {
    "torch": Repository("pytorch/pytorch"),
    "tensorflow": Repository("tensorflow/tensorflow"),
    "keras": Repository("keras-team/keras", prefix_since="2.6"),
    "jax": Repository("jax-ml/jax", "jax-v{}"),
    "jaxlib": Repository("jax-ml/jax", "jaxlib-v{}"),
    "numpy": Repository("numpy/numpy"),
    "theano": Repository("Theano/Theano", "rel-{}"),
    "numba": Repository("numba/numba", "{}"),
    "llvmlite": Repository("numba/llvmlite"),
    "scipy": Repository("scipy/scipy"),
    "optax": Repository("google-deepmind/optax"),
    "triton": Repository("triton-lang/triton"),
    "transformers": Repository("huggingface/transformers"),
}
"""Package, or framework -> the repository of its source."""


def revision(package: str, release: str, recorded: str = "") -> str:
    """Return the revision that a release was made from: a commit, or its tag; empty where neither is known.

    Args:
        package: a key of ``REPOSITORIES``; others have no tag.
        release: its version.
        recorded: what the release says itself: a commit, or the text of ``git describe``.

    >>> revision("tensorflow", "2.21.0", "v2.21.0-rc1-5-ga481b10260d"), revision("jax", "0.4.31")
    ('a481b10260d', 'jax-v0.4.31')
    >>> revision("keras", "2.1.6"), revision("torch", "1.0.1.post2"), revision("torch", "2.10.0.dev20251001")
    ('2.1.6', 'v1.0.1', '')
    """
    if commit := commit_of(recorded):
        return commit
    repository, numbers = REPOSITORIES.get(package), _RELEASE.fullmatch(release)
    if repository is None or numbers is None:
        return ""
    is_bare = repository.prefix_since and Version(numbers[1]) < Version(repository.prefix_since)
    return numbers[1] if is_bare else repository.tag.format(numbers[1])


def commit_of(recorded: str) -> str:
    """Return the commit that a release says it was made from; empty where it says none.

    >>> commit_of("v1.15.4-39-g3db52be"), commit_of("unknown")
    ('3db52be', '')
    """
    match = _COMMIT.fullmatch(recorded)
    return match[1] if match else ""


def short(revision: str) -> str:
    """Return a commit by its first digits, and a tag as it is.

    >>> short("cf30153c4c131c8164ee7798e5022d810682e2cb"), short("jax-v0.4.31")
    ('cf30153c4c', 'jax-v0.4.31')
    """
    return revision[:DIGITS] if _COMMIT.fullmatch(revision) else revision


def compare_link(package: str, before: str, after: str) -> str:
    """Return the address of a page with all changes between two revisions of a package; empty where none is known.

    >>> compare_link("numba", "0.65.0", "0.66.0")
    'https://github.com/numba/numba/compare/0.65.0...0.66.0'
    """
    repository = REPOSITORIES.get(package)
    if repository is None or not before or not after or before == after:
        return ""
    return f"https://github.com/{repository.path}/compare/{short(before)}...{short(after)}"
