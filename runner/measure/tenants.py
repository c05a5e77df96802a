"""Which cases share servers: the networks of users have servers of their own (decisions 0094 and 0132)."""

from collections.abc import Collection

from runner.core.model import Block, ModelFiles, Plan
from runner.core.paths import packaged_folder
from runner.harness.cases import is_model

EXAMPLES = "examples"
"""The folder of the networks that come with the program, in ``packaged_folder()``."""


def shipped_networks(plan: Plan) -> frozenset[str]:
    """Return the digests of the networks of a plan that come with the program."""
    return frozenset(digest for digest, files in plan.models.items() if _is_shipped(files))


def is_of_user(block: Block, shipped: Collection[str]) -> bool:
    """Return whether a case is of a network that does not come with the program.

    Args:
        block: the case.
        shipped: what ``shipped_networks`` returns for its plan.
    """
    spec = dict(block.spec)
    return is_model(spec) and spec.get("files") not in shipped


def _is_shipped(files: ModelFiles) -> bool:
    """Return whether each file of a network is, byte for byte, one of those that come with the program."""
    folder = packaged_folder() / EXAMPLES
    try:
        return all((folder / name).read_bytes() == content for name, content in files.files.items())
    except (OSError, ValueError):
        return False
