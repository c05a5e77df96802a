"""``python -m runner.harness.truth CASE``: compute the reference of a case and print it as JSON."""

import json
import sys

from . import reference, wire


def main(case: "dict") -> "dict":
    """Return ``loss``, ``gradients`` (packed) and ``digest`` of a case."""
    losses, gradients, digest = reference.compute(case)
    return {"loss": losses, "gradients": {name: wire.pack(value) for name, value in gradients.items()}, "digest": digest}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1])), sort_keys=True))
