"""``python -m runner.harness.verify CASE``: compute the reference for a case and print it as JSON."""

import json
import sys

from . import reference
from .. import protocol, cases


def main(case: "dict") -> "dict":
    """Return the reference for a case, on the case it is checked on, with arrays packed: see ``reference.compute``."""
    found = reference.compute(cases.checked(case))
    gradients = {name: protocol.pack(value) for name, value in found["gradients"].items()}
    return dict(found, gradients=gradients, outputs=protocol.pack(found["outputs"]))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1])), sort_keys=True))
