"""What PyTorch spells differently from release to release, by looking at what is there; and its switches."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
torch = None  # type: Any


def use(framework: "Any") -> "None":
    """Take PyTorch; this file is read on machines that have none."""
    global torch
    torch = framework


def zeros(like: "Any", columns: "int") -> "Any":
    """Return an initial state (B, columns) on the device of ``like`` (B, I), as a user of this release makes it."""
    if hasattr(like, "new_zeros"):
        return like.new_zeros((like.size(0), columns))
    return torch.autograd.Variable(like.data.new(like.size(0), columns).zero_())


def variable(tensor: "Any", volatile: "bool") -> "Any":
    """Return what a network takes: the tensor, or before 0.4 a Variable, ``volatile`` where nothing is to be kept."""
    if hasattr(torch, "no_grad"):
        return tensor
    return torch.autograd.Variable(tensor, volatile=volatile)


def inference(call: "Any") -> "Any":
    """Return ``call()`` with no gradient kept; before 0.4 its volatile input sees to that."""
    if not hasattr(torch, "no_grad"):
        return call()
    with torch.no_grad():
        return call()


def number(scalar: "Any") -> "float":
    """Return a loss as a float; waits for the device."""
    return float(scalar.item() if hasattr(scalar, "item") else scalar[0])


def detached(states: "Any") -> "Any":
    """Return states, nested in lists and tuples, without what they were computed from."""
    if isinstance(states, (list, tuple)):
        return type(states)(detached(state) for state in states)
    return states.detach()


def choose(tf32: "bool") -> "None":
    """Set what a GPU's algorithms are chosen by, as far as PyTorch knows it.

    Matrix products and cuDNN may round to TF32, or not. cuDNN neither tries its algorithms out, which takes the first
    calls and may end differently each time, nor keeps to those that always give the same bits: both are the default.
    """
    for name in ("benchmark", "deterministic"):
        if hasattr(torch.backends.cudnn, name):
            setattr(torch.backends.cudnn, name, False)
    if hasattr(getattr(torch.backends, "cuda", None), "matmul"):
        torch.backends.cuda.matmul.allow_tf32 = tf32
    if hasattr(torch.backends.cudnn, "allow_tf32"):
        torch.backends.cudnn.allow_tf32 = tf32


def full_sums() -> "None":
    """Have products of fp16 and bf16 added up in single precision, as far as PyTorch can be asked to."""
    matmul = getattr(getattr(torch.backends, "cuda", None), "matmul", None)
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        try:
            getattr(matmul, name)
        except (AttributeError, AssertionError):  # 1.12 says that it knows no such name by the latter
            continue
        setattr(matmul, name, False)


def event_seconds(call: "Any") -> "float":
    """Return the seconds between two events on the GPU, one before and one after all that a call asks of it."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def add_scaled(tensor: "Any", scale: "float", other: "Any") -> "None":
    """Add ``scale * other`` to ``tensor`` in place, in one operation."""
    try:
        tensor.add_(other, alpha=scale)
    except TypeError:  # before 1.0
        tensor.add_(scale, other)


def clip_norm(parameters: "list", norm: "float") -> "None":
    """Scale the gradients of ``parameters`` down to a joint norm, with the library's function.

    It scales by norm / (present norm + 1e-6), which is within 1e-6 / norm of the exact ratio.
    """
    utils = torch.nn.utils
    (utils.clip_grad_norm_ if hasattr(utils, "clip_grad_norm_") else utils.clip_grad_norm)(parameters, norm)


def binary_cross_entropy() -> "Any":
    """Return f(logits, target) -> mean sigmoid cross entropy; written out before 0.2, which has it."""
    if hasattr(torch.nn, "BCEWithLogitsLoss"):
        return torch.nn.BCEWithLogitsLoss()
    return lambda said, target: (said.clamp(min=0) - said * target + ((-said.abs()).exp() + 1).log()).mean()


def early_epsilon() -> "bool":
    """Say whether Adam adds epsilon before it corrects the second moment: tried on one number.

    A first gradient as large as epsilon, 1e-8, moves it by half the rate in algorithm 1, and by 3 % of it in the other.
    """
    weight = torch.nn.Parameter(torch.zeros(1))
    (weight * 1e-8).sum().backward()
    torch.optim.Adam([weight], lr=1.0).step()
    return abs(float(weight.data.numpy()[0])) < 0.25
