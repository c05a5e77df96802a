"""The base of TensorFlow's recurrent networks: converts the arrays, and has the engine of the installed version run."""

from ...cases import repeats
from ..base import Implementation
from .. import mixed
from ..driven import Driven
from . import layouts, optimizers, published, runtime
from .v1 import networks as v1_networks
from .v2 import networks as v2_networks

SINCE = {
    "cpu": {"fp16": (2, 21), "bf16": (2, 21)},
    "cuda": {"fp16": (2, 16), "bf16": (2, 16)},
}
"""Device -> precision -> the first release in which networks of 16 bits are measured: on a CPU the one that was tested.

1.x has mixed precision as a pass over the graph, for GPUs alone, and as casts that each program wrote for itself.
"""


class Recurrent(Driven, Implementation):
    """One way to compute a recurrent network; a class says how its cell, its layer or its network is built.

    A cell in a loop over the steps has ``cell_v1`` and ``cell_v2``, anything else ``network_v1`` and ``network_v2``.
    A class for one version alone leaves out the other's method, and ``since`` or ``before`` say so.
    """

    layout = "cells"  # see ``layouts``
    mixed = SINCE
    pure = SINCE
    compile_seconds = (0.3, 0.3)  # nothing is kept on disk; 1.8, 1.15 and 2.21 alike

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, TF32 came with 2.4, resettable optimisers with 2.11."""
        skip = super(Recurrent, cls).lacks(case, release, device, precision)
        if skip is not None:
            return skip
        if case.get("protocol") == "published" and release >= (2,) and not repeats(case):
            return "framework-lacks", "the original programs are for TensorFlow 1.x: there is none for 2.x"
        if (2,) <= release < (2, 11):
            return "framework-lacks", "Keras optimisers cannot be reset before TensorFlow 2.11"
        if precision == "tf32" and release < runtime.TF32_SINCE:
            return "precision-lacks", "TF32 needs TensorFlow 2.4 or later"
        return None

    @classmethod
    def original(cls, case, data, weights, device, precision):
        return published.PROGRAMS[case["workload"]](cls.slug, case, data, dict(runtime.SETTINGS, device=device))

    @classmethod
    def cell_v1(cls, case):
        """Return a new cell of 1.x: an ``RNNCell``."""
        raise TypeError("{} has no cell in TensorFlow 1.x".format(cls.slug))

    @classmethod
    def cell_v2(cls, case, weights):
        """Return a cell of 2.x: a function of (frame (B, I), states) that returns the next states, h as the last.

        Args:
            case: the sizes.
            weights: held arrays of the layer by name, as tensors.
        """
        raise TypeError("{} has no cell in TensorFlow 2.x".format(cls.slug))

    @classmethod
    def network_v1(cls, case, arrays):
        """Return the network as ``v1.networks`` describes it; ``arrays`` are the first weights by held name."""
        return v1_networks.Cells(case, cls.cell_v1)

    @classmethod
    def network_v2(cls, case):
        """Return the network as ``v2.networks`` describes it."""
        return v2_networks.Layers(case, v2_networks.looped(cls.cell_v2))

    def __init__(self, case, data, weights, device, precision):
        self.case = case
        arrays = layouts.convert(case, weights, self.layout)
        settings = dict(runtime.SETTINGS, device=device, precision=precision)
        self.description = mixed.description(case, precision, "layers in {}")
        settings.update(epsilon=optimizers.EPSILON, rows=layouts.rows(case, self.layout))
        self.engine = runtime.engine_module().Engine(type(self), case, self.held_data(data), arrays, settings)

    def held_data(self, data):
        """Return the arrays that stay on the device and are never trained.

        Words, and all labels except those of CTC, are int64: GPUs hold these, and no int32.
        """
        wide = {"ce": ("target",), "lm": ("x", "target")}.get(self.case["loss"], ())
        return {name: array.astype("int64") if name in wide else array for name, array in data.items()}

    def gradients(self):
        return layouts.revert(self.case, self.engine.gradients(), self.layout)
