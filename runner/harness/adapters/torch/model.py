"""A user's ``TorchModel``."""

from ..user_model import UserModel as Base
from . import compat


class UserModel(compat.OnDevice, Base):
    """Its default state is that of every attribute that is an ``nn.Module``, and of tensors that require a gradient."""

    framework = "torch"
    label = "PyTorch"
    stateful = "no attribute is an nn.Module"
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
        tensor = getattr(value, "data", value).cpu()
        if str(tensor.dtype if hasattr(tensor, "dtype") else "") in ("torch.bfloat16", "torch.float16"):
            tensor = tensor.float()
        return tensor.resolve_conj().numpy() if hasattr(tensor, "resolve_conj") else tensor.numpy()

    def variables(self):
        """See UserModel of ``user_model``; a tensor of several modules or attributes has the first of its names."""
        torch, named, known = compat.torch, {}, set()

        def add(name, tensor):
            identity = (tensor.data_ptr(), tuple(tensor.size()))
            if identity not in known or not tensor.numel():
                known.add(identity)
                named[name] = tensor

        is_module = isinstance(self.model, torch.nn.Module)
        entries = [("", self.model)] if is_module else list(self.attributes())
        for name, module in entries:
            if isinstance(module, torch.nn.Module):
                tensors = module.state_dict()
                for key in tensors:
                    if torch.is_tensor(tensors[key]):
                        add(name + "." + key if name else key, tensors[key])
        for name, entry in entries:
            if torch.is_tensor(entry) and getattr(entry, "requires_grad", False) and entry.is_leaf:
                add(name, entry.data)
        return {name: ((lambda tensor=named[name]: tensor), self.writer(named[name])) for name in named}

    @staticmethod
    def writer(tensor):
        """Return a function that copies an array into a tensor, in place."""

        def write(values):
            tensor.copy_(compat.torch.from_numpy(values))

        return write
