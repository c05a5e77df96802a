"""Losses, clipping and updates in PyTorch, for every case that ``adapters.base`` defines."""

import itertools

from ...cases.losses import LOSSES
from . import compat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def criterion(case: "dict", lengths: "tuple") -> "Callable[[Any, Any], Any]":
    """Return f(outputs, target) -> the loss of a case.

    Args:
        case: the sizes and the name of the loss.
        lengths: the number of steps of each sample, for CTC.
    """
    nn = compat.torch.nn
    if case["loss"] == "ctc":
        return mean_ctc(case, lengths)
    if case["loss"] == "bce":
        return compat.binary_cross_entropy()
    return nn.CrossEntropyLoss() if LOSSES[case["loss"]].class_targets else nn.MSELoss()


def mean_ctc(case: "dict", lengths: "tuple") -> "Callable[[Any, Any], Any]":
    """Return f(logits (T*B, C), labels (B, N)) -> mean CTC loss over the batch, in nats.

    The sum over the batch is divided here: PyTorch's mean first divides the loss of each sample by its number of
    labels. Labels on the device, in 64 bits, select PyTorch's kernel; cuDNN's requires samples of equal length.
    """
    batch = case["batch"]
    loss = compat.torch.nn.CTCLoss(blank=0, reduction="sum")
    label_lengths = (case["labels"],) * batch

    def mean(logits, target):
        logits = logits.view(case["steps"], batch, case["classes"])
        return loss(logits.log_softmax(2), target, lengths, label_lengths) / batch

    return mean


def target(case: "dict", array: "Any") -> "Any":
    """Return a canonical target as PyTorch's losses require it: classes in 64 bits, one for each row of the logits."""
    if case["loss"] == "bce":
        return array.reshape(-1, 1)
    if case["loss"] == "lm":
        array = array.reshape(-1)
    return array.astype("int64") if LOSSES[case["loss"]].class_targets else array


def clipper(case: "dict", trained: "list") -> "Callable[[], None]":
    """Return a function that clips the gradients of ``trained`` in place; None if the case clips nothing."""
    value, each, norm = case["clip_value"], case["clip_each"], case["clip_norm"]
    if not (value or each or norm):
        return None

    def clip():
        for parameter in trained:
            if value:
                parameter.grad.data.clamp_(-value, value)
            if each:
                compat.clip_norm([parameter], each)
        if norm:
            compat.clip_norm(trained, norm)

    return clip


def updater(case: "dict", trained: "list", arithmetic: "Any") -> "Callable[[], Any]":
    """Return a function that clips and updates once, by the library's optimiser with its defaults except the rate."""
    optimizer = library_optimizer(case, trained)
    corrected = case["optimizer"] == "adam" and compat.early_epsilon()
    step = corrected_step(optimizer) if corrected else optimizer.step
    return arithmetic.updater(optimizer, step, clipper(case, trained))


def library_optimizer(case: "dict", trained: "list", **options: "Any") -> "Any":
    """Return the library's optimiser of a case, with its defaults except the rate and ``options``."""
    optim = compat.torch.optim
    return (optim.SGD if case["optimizer"] == "sgd" else optim.Adam)(trained, lr=case["rate"], **options)


def corrected_step(adam: "Any") -> "Callable[[], None]":
    """Return the step of an Adam of an old release, in the form of algorithm 1 in Kingma and Ba 2015.

    Old releases add epsilon before they correct the second moment for its start at zero, the other form in that paper.
    With an epsilon that depends on the number of the step, they compute algorithm 1 exactly.
    """
    group = adam.param_groups[0]
    epsilon, decay = group["eps"], group["betas"][1]
    numbers = itertools.count(1)

    def step():
        group["eps"] = epsilon * (1 - decay ** next(numbers)) ** 0.5
        adam.step()

    return step
