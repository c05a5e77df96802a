"""What every implementation promises; one class in one adapter file adds one.

An adapter module imports its framework only inside ``load``, so the planner can read its classes where the
framework is missing. It provides:

    FRAMEWORK              the name used in matrix.yaml
    IMPLEMENTATIONS        its classes, in the order they are shown
    FORK_AFTER_IMPORT      False where a process may not fork once the framework is imported
    load(threads)          import the framework, set thread counts, touch no device; returns its version
    facts(device)          versions and device names, called in a child
"""


class Implementation(object):
    """One way a framework offers to compute a recurrent network, on one case and one device.

    Axes: T steps, B batch, I inputs, H hidden units, C classes, G gates (4 in an LSTM, 1 in a plain RNN).
    Canonical arrays are float32: ``layer0/kernel`` (I, G*H), ``layer0/recurrent`` (H, G*H), ``layer0/bias`` (G*H,)
    and, where there are classes, ``output/kernel`` (C columns: (H, C)). Gate order is i, f, g, o; the bias of f holds
    the case's forget bias already. ``x`` is (T, B, I) float32; ``target`` is (B, H) float32 for the squared error and
    (B,) int32 for the cross entropy.
    """

    slug = ""
    kind = ""  # flexible, fused or vendor
    cells = ("lstm",)
    since = (0,)
    before = None
    devices = ("cpu", "cuda")
    precisions = ("fp32", "tf32")

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """Return (skip code, reason) where this cannot run by what is known beforehand, else None.

        ``release`` is the framework's version as a tuple of numbers; a floating ``2.*`` is (2, inf).
        """
        if case["cell"] not in cls.cells:
            return "framework-lacks", "{} computes {} only".format(cls.slug, " and ".join(cls.cells))
        if release < cls.since:
            return "framework-lacks", "{} came with {}".format(cls.slug, ".".join(map(str, cls.since)))
        if cls.before is not None and release >= cls.before:
            return "framework-lacks", "{} went with {}".format(cls.slug, ".".join(map(str, cls.before)))
        if device not in cls.devices:
            return "needs-gpu", "{} has no CPU kernel".format(cls.slug)
        if precision not in cls.precisions or (precision == "tf32" and device == "cpu"):
            return "precision-lacks", "{} does not compute {} on {}".format(cls.slug, precision, device)
        return None

    def __init__(self, case, data, weights, device, precision):
        """Build the network and move ``data`` and ``weights`` to the device; nothing is run yet.

        Args:
            case: the sizes, the loss (``mse``: mean over B*H; ``ce``: mean over B), the optimiser and its rate.
            data: ``x`` and ``target``.
            weights: canonical arrays by name.
            device: ``cpu`` or ``cuda``.
            precision: ``fp32``; ``tf32`` lets the device round the products.
        """

    def reset(self):
        """Put the canonical weights back and clear the optimiser's state."""

    def forward(self):
        """Run the network once, for inference: no gradient is kept. Need not wait for the device.

        It ends with the last hidden state where the loss is ``mse``, with the logits where it is ``ce``.
        """

    def outputs(self):
        """Return what ``forward`` computes at the present weights, (B, H) or (B, C), as an array.

        It runs the same program object that ``forward`` runs, so that what is checked is what is timed.
        """

    def train(self):
        """Run forward, loss, backward and update once. Need not wait for the device."""

    def loss(self):
        """Return the loss of the last ``train``, as it was before that step's update."""

    def gradients(self):
        """Return canonical name -> gradient of the loss at the present weights; nothing is updated."""

    def synchronize(self):
        """Wait until the device has done all it was asked."""


def gates(array, order, source="ifgo"):
    """Reorder the gate blocks of the last axis, from the canonical order ``ifgo`` to ``order`` (or back).

    >>> import numpy
    >>> gates(numpy.array([1, 2, 3, 4]), "igfo").tolist()
    [1, 3, 2, 4]
    """
    import numpy

    if len(order) == 1 or len(source) == 1 or order == source:
        return array
    blocks = numpy.split(array, len(source), axis=-1)
    return numpy.concatenate([blocks[source.index(gate)] for gate in order], axis=-1)
