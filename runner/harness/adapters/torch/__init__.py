"""PyTorch, from 0.1.12 to 2.x.

An implementation is a class in ``cells`` (cells in a loop over the steps), ``modules`` (recurrent modules), ``graphs``
(both in a CUDA graph), ``kernels`` (single operations) or ``allreduce``, named in the tuple at the end of that file.
``network``, ``stack``, ``training`` and ``precisions`` are the networks around cells and modules. No code compares
versions at run time: ``compat`` looks at the interfaces that are there.
"""

import importlib
import os
import re

from ..described import known
from . import compat
from . import profile  # noqa: F401  see ``harness.profiling``
from . import steps
from .allreduce import SUMS
from .cells import CELLS, COMPILED_CELLS
from .graphs import GRAPHS
from .kernels import OPERATIONS
from .model import UserModel
from .modules import MODULES
from ... import variables

FRAMEWORK = "torch"
CXX_FLAGS = re.compile(r"CXX_FLAGS=([^,]*)")
OPTIMISATION = re.compile(r"-(O|m|f\S*math)")
"""The flags of a compiler that change the instructions that it writes; most of the others are about warnings."""
FORK_AFTER_IMPORT = True
IMPLEMENTATIONS = CELLS + MODULES + COMPILED_CELLS + GRAPHS + OPERATIONS + SUMS + (UserModel,)


def load(threads: "int") -> "str":
    """Import PyTorch and set its thread count, without using a device; return its version."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # read when Dynamo is imported
    import torch

    chosen = {"OMP_NUM_THREADS", "MKL_NUM_THREADS"} & variables.CHOSEN  # PyTorch starts with the count in these
    if not chosen and torch.get_num_threads() != threads:  # setting it starts a thread pool, which does not survive a fork
        torch.set_num_threads(threads)
    compat.use(torch)
    compat.count_gpus_by_cuda(torch.cuda)
    steps.use(torch)
    return str(torch.__version__)


def load_for_children() -> "None":
    """Import what the first optimiser imports otherwise, in a second; a plain process does so when it builds one."""
    import torch

    if hasattr(torch, "compile"):
        importlib.import_module("torch._dynamo")


def facts(device: "str") -> "dict":
    """Return the versions, the name of the device, the libraries used, and the defaults that times depend on."""
    import torch

    described = {
        "version": str(torch.__version__),
        "threads": torch.get_num_threads(),  # 1.0.0 always returns 1
        "zero_grad": "none",
        "zero_grad_published": "as the library has it",
        "adam_epsilon": "corrected at each step" if compat.early_epsilon() else "as the library has it",
        "optimizer_loop": "foreach" if device == "cuda" and _foreach_by_default() else "parameter by parameter",
    }
    described.update(known(cuda_facts, torch, device), **known(lambda: {"source_revision": torch.version.git_version}))
    if device == "cuda":
        described["device"] = torch.cuda.get_device_name(0)
    if hasattr(torch, "__config__"):
        described.update(known(lambda: libraries(torch.__config__.show())))
    return described


def cuda_facts(torch: "object", device: "str") -> "dict":
    """Return the versions of CUDA and cuDNN, and whether products and convolutions round to TF32 by default."""
    cudnn = torch.backends.cudnn
    matmul = getattr(getattr(torch.backends, "cuda", None), "matmul", None)
    return {
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "cudnn": cudnn.version() if device == "cuda" else None,
        "tf32_default_matmul": getattr(matmul, "allow_tf32", None),
        "tf32_default_cudnn": getattr(cudnn, "allow_tf32", None),
    }


def _foreach_by_default():
    return hasattr(importlib.import_module("torch.optim.optimizer"), "_default_to_fused_or_foreach")


def libraries(text: "str") -> "dict":
    """Return the lines of ``torch.__config__.show()`` about libraries, the compiler and its optimisation, shortened.

    >>> sorted(libraries("built with:\\n  - Intel(R) MKL-DNN v2.6.0 (Git Hash 52b5)\\n  - OpenMP 201511").items())
    [('onednn', 'Intel(R) MKL-DNN v2.6.0'), ('openmp', 'OpenMP 201511')]
    >>> sorted(libraries("  - GCC 7.3\\n  - Build settings: CXX_FLAGS= -Wall -O2 -fPIC -march=native, USE_MKL=ON").items())
    [('compiler', 'GCC 7.3'), ('compiler_flags', '-O2 -march=native')]
    """
    signs = (("onednn", "MKL-DNN"), ("blas", "Math Kernel Library"), ("openmp", "OpenMP"), ("cpu", "CPU capability"))
    signs += (("compiler", "- GCC "), ("compiler", "- clang "))
    settings = CXX_FLAGS.search(text)
    flags = [flag for flag in settings.group(1).split() if OPTIMISATION.match(flag)] if settings else []
    lines = {"compiler_flags": " ".join(flags)} if settings else {}
    for line in text.splitlines():
        for name, sign in signs:
            if sign in line and line.startswith("  - "):
                lines[name] = line[4:].split(" (Git")[0].split(" Product Build")[0].split(" (a.k.a")[0].strip()
                break
    return lines
