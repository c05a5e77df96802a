"""A user's ``TorchModel``."""

import collections

from ...model.state import Store, stripped
from ..user_model import UserModel as Base
from . import compat


class UserModel(compat.OnDevice, Base):
    """Its default state is that of each ``nn.Module`` that it holds, and of tensors that require a gradient."""

    framework = "torch"
    label = "PyTorch"
    stateful = "no attribute is or holds an nn.Module"
    can_be_captured = False  # what a user's method does may not be recorded

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; TF32 came with 1.7."""
        if precision == "tf32" and release < (1, 7):
            return "precision-lacks", "TF32 needs PyTorch 1.7 or later"
        return super(UserModel, cls).lacks(case, release, device, precision)

    def prepare(self, device, precision):
        compat.set_backends(precision == "tf32")

    def seed(self, number):
        """See UserModel of ``user_model``; seeds the generators of all GPUs as well."""
        compat.torch.manual_seed(number)

    def as_array(self, value):
        torch = compat.torch
        if not (torch.is_tensor(value) or isinstance(value, torch.autograd.Variable)):
            return None
        tensor = compat.dense(getattr(value, "data", value)).cpu()
        if str(tensor.dtype if hasattr(tensor, "dtype") else "") in ("torch.bfloat16", "torch.float16"):
            tensor = tensor.float()
        return tensor.resolve_conj().numpy() if hasattr(tensor, "resolve_conj") else tensor.numpy()

    def is_unbuilt(self):
        """See UserModel of ``user_model``; lazy modules came with 1.8."""
        is_lazy = getattr(compat.torch.nn.parameter, "is_lazy", None)
        if is_lazy is None:
            return False
        modules = [value for _, value in self.attributes() if isinstance(value, compat.torch.nn.Module)]
        return any(is_lazy(tensor) for module in modules for tensor in list(module.parameters()) + list(module.buffers()))

    def stores(self):
        """See UserModel of ``user_model``: one of all tensors; one that has several names has the others as aliases.

        Its name is the first that no wrapper has changed: ``net.weight``, and not ``compiled._orig_mod.weight``.
        """
        torch, named = compat.torch, []
        for name, value in self.attributes():
            if isinstance(value, torch.nn.Module):
                state = value.state_dict()
                named += [((name + "." + key).strip("."), state[key]) for key in state if torch.is_tensor(state[key])]
            elif torch.is_tensor(value) and getattr(value, "requires_grad", False) and value.is_leaf:
                named.append((name, value.data))
        names, tensors = collections.OrderedDict(), []
        for name, tensor in named:
            identity = (tensor.data_ptr(), tuple(tensor.size())) if tensor.numel() else name
            if identity not in names:
                tensors.append(tensor)
            names.setdefault(identity, []).append(name)
        ordered = [sorted(same, key=lambda name: stripped(name) != name) for same in names.values()]
        aliases = {same[0]: same[1:] for same in ordered}
        return [Store([same[0] for same in ordered], lambda: tensors, lambda arrays: write(tensors, arrays), aliases)]


def write(tensors: "list", arrays: "list") -> "None":
    """Copy arrays into tensors, in place; None leaves one as it is."""
    for tensor, array in zip(tensors, arrays):
        if array is not None:
            tensor.copy_(compat.torch.from_numpy(array))
