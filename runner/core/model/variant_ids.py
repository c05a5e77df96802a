"""Variants of an environment: the same image, started with other variables or with another number of threads.

A variant's id begins with that of its environment: ``torch-2.x@env:OMP_WAIT_POLICY=passive``,
``torch-2.x@env:A=1,B=2@threads:4``. Values are percent-encoded where they have a character that no id has: a slash,
which separates the parts of a cell's id, a comma, a space, @.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

VARIABLES = "@env:"
"""Begins the variables of a variant's id; ``,`` separates them."""
THREADS = "@threads:"
"""Begins the thread count of a variant's id, after its variables."""
SAFE = ":+="
"""Characters of values that ids have beside letters, digits, ``_``, ``.`` and ``-``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the processes of an environment are started, where that is not how those of every other one are.

    Attributes:
        image: the environment whose image or interpreter it is; empty for its own.
        variables: name -> value, set before the interpreter starts.
        threads: CPU threads; 0 for those of the run.
    """

    image: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int = 0


USUAL_LAUNCH = Launch()


def variant_name(environment: str, variables: Mapping[str, str], threads: int = 0) -> str:
    """Return the id of a variant.

    >>> variant_name("jax", {"XLA_FLAGS": "--a=false --b=/tmp"}, 4)
    'jax@env:XLA_FLAGS=--a=false%20--b=%2Ftmp@threads:4'
    """
    texts = [f"{name}={_encoded(value)}" for name, value in variables.items()]
    of_variables = VARIABLES + ",".join(texts) if texts else ""
    return f"{environment}{of_variables}{f'{THREADS}{threads}' if threads else ''}"


def _encoded(value: str) -> str:
    return quote(value, safe=SAFE).replace("~", "%7E")


def split_variant(name: str) -> tuple[str, str, str]:
    """Return (environment, text of its variables, text of its thread count) of an id or a selector; empty where none.

    >>> split_variant("jax@env:A=1,B=2@threads:4"), split_variant("jax")
    (('jax', 'A=1,B=2', '4'), ('jax', '', ''))
    """
    rest, _, threads = name.partition(THREADS)
    environment, _, variables = rest.partition(VARIABLES)
    return environment, variables, threads


def is_variant(name: str) -> bool:
    """Return True if an id or a selector names a variant of an environment."""
    return VARIABLES in name or THREADS in name


def without_variant(name: str) -> str:
    """Return the environment that a variant is one of; any other environment is returned unchanged.

    >>> without_variant("jax@env:A=1@twin"), without_variant("jax@twin")
    ('jax', 'jax@twin')
    """
    return split_variant(name)[0]


def decoded(value: str) -> str:
    """Return the value of a variable from a part of an id, or from a selector as it was typed."""
    return unquote(value)
