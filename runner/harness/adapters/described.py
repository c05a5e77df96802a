"""Reading facts of a framework that not every release has: what cannot be read is not known, and ends nothing."""

from ..errors import CellFailure


def known(read: "object", *arguments: "object") -> "dict":
    """Return the facts that a function returns; none if it raises, for a description never ends a measurement.

    Raises:
        CellFailure: the function raised it: there is no device, which is no description.
    """
    try:
        return read(*arguments)
    except CellFailure:
        raise
    except Exception:  # whatever a release lacks
        return {}


def of(adapter: "object", version: "str", device: "str") -> "dict":
    """Return the facts of a framework by its adapter, with ``version`` if nothing else can be read.

    On a GPU, reading them is what finds out whether the framework can use it, so that every exception counts there.

    Args:
        adapter: the module.
        version: that its ``load`` returned.
        device: ``cpu`` or ``cuda``.
    """
    read = adapter.facts
    return dict({"version": version}, **(known(read, device) if device == "cpu" else read(device)))
