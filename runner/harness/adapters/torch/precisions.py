"""How a network computes in each precision: in single precision, by autocast, or with everything in 16 bits.

Sources: https://docs.pytorch.org/docs/stable/amp.html and .../notes/amp_examples.html, "Typical mixed precision training".
"""

from ...cases.recurrent import is_pure
from ...errors import CellFailure
from . import compat
from ..base import LOSS_SCALE, SIXTEEN_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable
NAMES = {"fp16": "float16", "bf16": "bfloat16"}
FOREVER = 2 ** 31 - 1  # training steps without an overflow after which GradScaler doubles its scale


def arithmetic(case: "dict", device: "str", precision: "str") -> "Single":
    """Return how a network of a case computes in a precision on a device."""
    if precision not in SIXTEEN_BITS:
        return Single()
    return (Pure if is_pure(case) else Mixed)(device, precision)


class Single(object):
    """Everything in single precision, which TF32 may round in products."""

    description = None
    scale = 1.0
    waits_in_update = False  # for the device

    def convert(self, value: "Any") -> "Any":
        """Return a tensor or a module with numbers of the type that weights and data have."""
        return value

    def covering(self, call: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return a function that calls ``call``, the network or the network and its loss, in this arithmetic."""
        return call

    def for_loss(self, outputs: "Any") -> "Any":
        """Return the outputs as the loss reads them."""
        return outputs

    def scaled(self, loss: "Any") -> "Any":
        """Return the loss as it goes into the backward pass: times ``scale``."""
        return loss

    def updater(self, optimizer: "Any", step: "Callable[[], Any]", clip: "Callable[[], None] | None") -> "Callable[[], Any]":
        """Return a function that clips and updates once.

        Args:
            optimizer: the library's optimiser.
            step: makes its step.
            clip: clips the gradients in place; None where nothing is clipped.
        """
        if clip is None:
            return step

        def update():
            clip()
            step()

        return update

    def check(self, outputs: "Any") -> "None":
        """Raise CellFailure where outputs show that another arithmetic was used."""

    def check_scale(self) -> "None":
        """Raise CellFailure where a step was left out because its gradients were not finite."""


class SixteenBits(Single):
    """What autocast and numbers of 16 bits share: fp16 scales the loss, for its smallest number is 6e-8."""

    def __init__(self, device, precision):
        """Take ``cpu`` or ``cuda``, and ``fp16`` or ``bf16``."""
        self.device, self.precision = device, precision
        self.type = getattr(compat.torch, NAMES[precision])
        self.scale = LOSS_SCALE if precision == "fp16" else 1.0

    def for_loss(self, outputs):
        """See Single; on a CPU, autocast of 1.12 computes some losses in 16 bits."""
        return outputs.float()

    def scaled(self, loss):
        return loss * self.scale if self.scale != 1 else loss

    def check(self, outputs):
        """See Single. Outputs in fp32 are right, too: PyTorch returns the wider type where an operation gets two types."""
        if outputs.dtype not in (self.type, compat.torch.float32):
            text = "the network computes in {} instead of {}"
            raise CellFailure("wrong-result", text.format(str(outputs.dtype).split(".")[-1], NAMES[self.precision]))


class Mixed(SixteenBits):
    """``torch.autocast`` over the network and its loss, with weights, gradients and updates in single precision.

    In fp16, GradScaler scales the loss, divides the gradients, leaves out a step whose gradients are not finite, for which
    it waits for the device, and updates its scale. The scale stays the same: it starts at one that overflows nowhere,
    and does not grow.
    """

    def __init__(self, device, precision):
        SixteenBits.__init__(self, device, precision)
        self.description = "autocast to {}, weights in float32".format(NAMES[precision])
        self.scaler = None
        self.waits_in_update = precision == "fp16"
        if precision == "fp16":
            self.description += ", loss scale {:g}".format(LOSS_SCALE)

    def covering(self, call):
        """See Single.

        Raises:
            CellFailure: this PyTorch does nothing on the device in this type, of which it only warns.
        """
        autocast = compat.autocast(self.device, self.type)
        if not getattr(autocast, "_enabled", True):
            text = "autocast to {} is disabled on this device"
            raise CellFailure("wrong-result", text.format(NAMES[self.precision]))

        def covered(*args):
            with autocast:
                return call(*args)

        return covered

    def scaled(self, loss):
        return loss if self.scaler is None else self.scaler.scale(loss)

    def updater(self, optimizer, step, clip):
        if self.precision != "fp16":
            return Single.updater(self, optimizer, step, clip)
        self.scaler = scaler = compat.scaler(self.device, LOSS_SCALE, FOREVER)

        def update():
            if clip is not None:
                scaler.unscale_(optimizer)
                clip()
            scaler.step(optimizer)
            scaler.update()

        return update

    def check_scale(self):
        if self.scaler is not None and self.scaler.get_scale() != LOSS_SCALE:
            raise CellFailure("nan", "a gradient is not finite in fp16 at a loss scale of {:g}".format(LOSS_SCALE))


class Pure(SixteenBits):
    """Weights, data, states and gradients in 16 bits; the loss reads the states in single precision."""

    def __init__(self, device, precision):
        SixteenBits.__init__(self, device, precision)
        self.description = "weights, data and states in {}".format(NAMES[precision])
        if precision == "fp16":
            self.description += ", loss scale {:g}".format(LOSS_SCALE)

    def convert(self, value):
        """See Single; numbers of words and of classes stay whole."""
        if hasattr(value, "dtype") and not value.dtype.is_floating_point:
            return value
        return value.to(self.type)

    def updater(self, optimizer, step, clip):
        """See Single; the gradients are those of the scaled loss, so the rate is divided by the scale.

        Raises:
            CellFailure: the case clips its gradients, or its optimiser is not SGD: no case of a workload in 16 bits does.
        """
        if clip is not None or not isinstance(optimizer, compat.torch.optim.SGD):
            raise CellFailure("crash", "weights in 16 bits are trained by SGD without clipping only")
        for group in optimizer.param_groups:
            group["lr"] /= self.scale
        return step
