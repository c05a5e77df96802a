"""Losses, clipping and updates in PyTorch, for every case of the contract in ``api``."""

import itertools

from . import compat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

FLAT = ("ctc", "lm")  # losses whose logits come from every step


def criterion(case: "dict", lengths: "tuple") -> "Callable[[Any, Any], Any]":
    """Return f(what the network says, target) -> the loss of a case.

    Args:
        case: the sizes and the name of the loss.
        lengths: how many steps of each sample count; for CTC.
    """
    nn = compat.torch.nn
    if case["loss"] == "ctc":
        return connectionist(case, lengths)
    if case["loss"] == "bce":
        return compat.binary_cross_entropy()
    return nn.CrossEntropyLoss() if case["loss"] in ("ce", "lm") else nn.MSELoss()


def connectionist(case: "dict", lengths: "tuple") -> "Callable[[Any, Any], Any]":
    """Return f(logits (T*B, C), labels (B, N)) -> mean CTC loss over the batch, in nats.

    The sum over the batch, divided here: PyTorch's own mean first divides each sample by its number of labels. Labels
    on the device, in 64 bits, keep PyTorch's own kernel; cuDNN's would want every sample as long as the longest.
    """
    batch = case["batch"]
    loss = compat.torch.nn.CTCLoss(blank=0, reduction="sum")
    labels = (case["labels"],) * batch

    def mean(logits, target):
        logits = logits.view(case["steps"], batch, case["classes"])
        return loss(logits.log_softmax(2), target, lengths, labels) / batch

    return mean


def target(case: "dict", array: "Any") -> "Any":
    """Return a canonical target as PyTorch's losses take it: classes in 64 bits, one to a row of the logits."""
    if case["loss"] == "bce":
        return array.reshape(-1, 1)
    if case["loss"] in ("ce", "ctc"):
        return array.astype("int64")
    return array.reshape(-1).astype("int64") if case["loss"] == "lm" else array


def clipper(case: "dict", trained: "list") -> "Callable[[], None]":
    """Return a function that clips the gradients of ``trained`` in place as the case wants it, or None."""
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


def updater(case: "dict", trained: "list") -> "Callable[[], Any]":
    """Return a function that clips and does one update, by the library's own optimiser with its defaults but the rate.

    Old releases of Adam add epsilon before the second moment is corrected for its start at zero (the other form in
    Kingma and Ba 2015). An epsilon that follows the step gives the common one, algorithm 1, exactly.
    """
    optim = compat.torch.optim
    clip = clipper(case, trained)
    if case["optimizer"] == "sgd":
        step = optim.SGD(trained, lr=case["rate"]).step
    else:
        adam = optim.Adam(trained, lr=case["rate"])
        step = corrected(adam) if compat.early_epsilon() else adam.step
    if clip is None:
        return step

    def update():
        clip()
        step()

    return update


def corrected(adam: "Any") -> "Callable[[], None]":
    """Return the step of an Adam that adds epsilon early, with an epsilon that follows the step."""
    group = adam.param_groups[0]
    epsilon, decay = group["eps"], group["betas"][1]
    steps = itertools.count(1)

    def update():
        group["eps"] = epsilon * (1 - decay ** next(steps)) ** 0.5
        adam.step()

    return update
