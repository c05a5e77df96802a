"""``python -m runner.harness.verify CASE``: compute the reference of a case and print it as JSON."""

import json
import sys

from . import reference
from .. import cases, protocol


def main(case: "dict") -> "dict":
    """Return ``reference.compute`` of the case on which ``case`` is checked, with its arrays packed."""
    result = reference.compute(cases.checked(case))
    gradients = {name: protocol.pack(gradient) for name, gradient in result["gradients"].items()}
    return dict(result, gradients=gradients, outputs=protocol.pack(result["outputs"]))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1])), sort_keys=True))
