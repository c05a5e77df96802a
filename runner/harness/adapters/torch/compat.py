"""The interfaces that differ between releases of PyTorch, chosen by what is there, and the settings of its backends."""

import os

from . import device_clock, dynamo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
torch = None  # type: Any


def use(framework: "Any") -> "None":
    """Set the module that this one works with; its file is also read on machines without PyTorch."""
    global torch
    torch = framework


def count_gpus_by_cuda(cuda: "Any") -> "None":
    """Have PyTorch 1.13 ask CUDA for the number of GPUs where CUDA_VISIBLE_DEVICES contains UUIDs.

    It asks NVML, and reads a UUID as no GPU: it then refuses to name GPU 0, and autocast and GradScaler do nothing. The
    function that reads UUIDs came with 2.0. Source: https://github.com/pytorch/pytorch/issues/90543.
    """
    reads_uuids = hasattr(cuda, "_raw_device_uuid_nvml") or not hasattr(cuda, "_device_count_nvml")
    if not reads_uuids and "-" in os.environ.get("CUDA_VISIBLE_DEVICES", ""):
        cuda._device_count_nvml = lambda: -1  # NVML failed, so that CUDA is asked
        getattr(cuda.device_count, "cache_clear", int)()


class OnDevice(object):
    """A program whose ``device`` is ``cpu`` or ``cuda``."""

    device = "cpu"
    can_be_captured = True  # as a CUDA graph

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def device_timer(self, call, calls):
        if self.device != "cuda":
            return None
        return device_clock.timer(torch.cuda, call, calls, self.can_be_captured)

    compilations = staticmethod(dynamo.counts)

    def peak_bytes(self):
        """See Implementation; PyTorch counts them since 0.4."""
        count = getattr(torch.cuda, "max_memory_allocated", None)
        return int(count()) if self.device == "cuda" and count else None

    def to_device(self, value):
        """Return a tensor or a module on the device."""
        return value.cuda() if self.device == "cuda" else value


def zeros(like: "Any", columns: "int") -> "Any":
    """Return an initial state (B, columns) on the device of ``like`` (B, I), as a user of this release makes it."""
    if hasattr(like, "new_zeros"):
        return like.new_zeros((like.size(0), columns))
    return torch.autograd.Variable(like.data.new(like.size(0), columns).zero_())


def variable(tensor: "Any", volatile: "bool") -> "Any":
    """Return the input of a network: the tensor, or before 0.4 a Variable; a ``volatile`` one records no graph."""
    if hasattr(torch, "no_grad"):
        return tensor
    return torch.autograd.Variable(tensor, volatile=volatile)


def inference(call: "Any") -> "Any":
    """Return ``call()`` without recording a graph; before 0.4 its volatile input has that effect."""
    if not hasattr(torch, "no_grad"):
        return call()
    with torch.no_grad():
        return call()


def number(scalar: "Any") -> "float":
    """Return a loss as a float; waits for the device."""
    return float(scalar.item() if hasattr(scalar, "item") else scalar[0])


def dense(tensor: "Any") -> "Any":
    """Return a sparse, nested or quantized tensor as an ordinary dense one; return any other tensor as it is."""
    if getattr(tensor, "is_nested", False):  # padded with zeros; since 1.13
        return torch.nested.to_padded_tensor(tensor, 0.0)
    if getattr(tensor, "is_quantized", False):
        return tensor.dequantize()
    is_sparse = getattr(tensor, "is_sparse", False) or getattr(tensor, "layout", None) != getattr(torch, "strided", None)
    return tensor.to_dense() if is_sparse else tensor


def detached(states: "Any") -> "Any":
    """Return states, nested in lists and tuples, without the graph they were computed by."""
    if isinstance(states, (list, tuple)):
        return type(states)(detached(state) for state in states)
    return states.detach()


def set_backends(tf32: "bool") -> "None":
    """Set how a GPU chooses its algorithms, as far as the release has these settings.

    Matrix products and cuDNN may round to TF32, or may not. cuDNN neither benchmarks its algorithms, which takes the
    first calls and may choose differently each time, nor is restricted to deterministic ones; both are the defaults.
    """
    for name in ("benchmark", "deterministic"):
        if hasattr(torch.backends.cudnn, name):
            setattr(torch.backends.cudnn, name, False)
    if hasattr(getattr(torch.backends, "cuda", None), "matmul"):
        torch.backends.cuda.matmul.allow_tf32 = tf32
    if hasattr(torch.backends.cudnn, "allow_tf32"):
        torch.backends.cudnn.allow_tf32 = tf32


def sum_in_single_precision() -> "None":
    """Let matrix products of fp16 and bf16 sum in single precision, as far as the release has these settings."""
    matmul = getattr(getattr(torch.backends, "cuda", None), "matmul", None)
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        try:
            getattr(matmul, name)
        except (AttributeError, AssertionError):  # 1.12 raises the latter for a name it does not know
            continue
        setattr(matmul, name, False)


def autocast(device: "str", kind: "Any") -> "Any":
    """Return the context in which operations compute in ``kind``, a type of 16 bits; ``torch.autocast`` came with 1.10."""
    if hasattr(torch, "autocast"):
        return torch.autocast(device, dtype=kind)
    return torch.cuda.amp.autocast()  # fp16


def scaler(device: "str", scale: "float", interval: "int") -> "Any":
    """Return a GradScaler that starts at ``scale`` and doubles it after ``interval`` steps; other devices came with 2.3."""
    if hasattr(getattr(torch, "amp", None), "GradScaler"):
        return torch.amp.GradScaler(device, init_scale=scale, growth_interval=interval)
    return torch.cuda.amp.GradScaler(init_scale=scale, growth_interval=interval)


def add_scaled(tensor: "Any", scale: "float", other: "Any") -> "None":
    """Add ``scale * other`` to ``tensor`` in place, in one operation."""
    try:
        tensor.add_(other, alpha=scale)
    except TypeError:  # before 1.0
        tensor.add_(scale, other)


def clip_norm(parameters: "list", norm: "float") -> "None":
    """Scale the gradients of ``parameters`` down to a joint norm, with the library's function.

    It scales by norm / (current norm + 1e-6), which is within 1e-6 / norm of the exact ratio.
    """
    utils = torch.nn.utils
    (utils.clip_grad_norm_ if hasattr(utils, "clip_grad_norm_") else utils.clip_grad_norm)(parameters, norm)


def binary_cross_entropy() -> "Any":
    """Return f(logits, target) -> mean sigmoid cross entropy; BCEWithLogitsLoss came with 0.2."""
    if hasattr(torch.nn, "BCEWithLogitsLoss"):
        return torch.nn.BCEWithLogitsLoss()
    return lambda logits, target: (logits.clamp(min=0) - logits * target + ((-logits.abs()).exp() + 1).log()).mean()


def early_epsilon() -> "bool":
    """Return True if Adam adds epsilon before it corrects the second moment, which is tried on one number.

    A first gradient equal to epsilon, 1e-8, moves the number by half the rate in algorithm 1, by 3 % of it otherwise.
    """
    weight = torch.nn.Parameter(torch.zeros(1))
    (weight * 1e-8).sum().backward()
    torch.optim.Adam([weight], lr=1.0).step()
    return abs(float(weight.data.numpy()[0])) < 0.25
