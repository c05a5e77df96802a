"""The sum of several processes' arrays by ``torch.distributed``: with gloo on a CPU, and with NCCL over GPUs."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import traceback

from ...supervisor import PR_SET_PDEATHSIG
from ...cases import deepbench_allreduce
from .. import kernel
from . import compat
from .device import OnDevice

AGAIN = 16  # calls, then the first numbers are put back: sums of sums of 32 processes pass what single precision holds at 25
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


class Part(OnDevice):
    """One process's array, and the group that it is in; all processes make their calls in step."""

    def __init__(self, case, rank, folder, array, device):
        """Join the group, which waits until all have; a process has one thread of PyTorch's, or the GPU of its number."""
        compat.torch.set_num_threads(1)
        self.device = device
        self.distributed = compat.torch.distributed
        self.own = compat.torch.from_numpy(array)
        if device == "cuda":
            compat.torch.cuda.set_device(rank)
            self.own = self.own.cuda()
        self.sums = self.own.clone()
        self.count = 0
        for name in INTERFACES:
            os.environ[name] = "lo"  # a container without a network cannot look its own name up
        place = "file://" + os.path.join(folder, "group")
        group = "nccl" if device == "cuda" else "gloo"
        self.distributed.init_process_group(group, init_method=place, rank=rank, world_size=case["chips"])

    def reduce(self):
        """Sum all processes' arrays up; each has the sum then. Need not wait for a GPU."""
        if self.count % AGAIN == 0:
            self.sums.copy_(self.own)
        self.count += 1
        self.distributed.all_reduce(self.sums)


class AllReduce(OnDevice, kernel.Kernel):
    """``torch.distributed.all_reduce`` in place, over as many processes as the case has chips; process 0 is timed.

    The others are forked before PyTorch starts a thread or touches a GPU. They make the same calls until process 0 is
    gone.
    """

    slug = "allreduce-gloo"
    workload = "deepbench-allreduce"
    devices = ("cpu",)
    precisions = ("fp32",)
    since = (1, 0)  # torch.distributed as it is since

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        self.device = device
        folder = tempfile.mkdtemp(prefix="all-reduce-")
        for rank in range(1, case["chips"]):
            if os.fork() == 0:
                other(case, rank, folder, device)
        self.part = Part(case, 0, folder, data["x"], device)
        self.part.reduce()
        self.synchronize()
        shutil.rmtree(folder, ignore_errors=True)  # not before a first sum, for others may still be joining

    def forward(self):
        """See Implementation."""
        self.part.reduce()

    def result(self, phase):
        """See Kernel; the sum of first numbers, which is the one after they were put back."""
        self.forward()
        while self.part.count % AGAIN != 1:
            self.forward()
        return self.part.sums.cpu().numpy()


class NcclAllReduce(AllReduce):
    """The same over GPUs, one for each process."""

    slug = "allreduce-nccl"
    devices = ("cuda",)


def other(case, rank, folder, device):
    """Be a process of the group until process 0, which nobody outlives, is gone; never returns."""
    parent, joined = os.getppid(), False
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    try:
        part = Part(case, rank, folder, deepbench_allreduce.array_of_rank(case, rank), device)
        joined = True
        while True:
            part.reduce()
            part.synchronize()
    except BaseException as error:
        if not (joined and device == "cpu" and isinstance(error, RuntimeError)):  # that is gloo: the connection is closed
            traceback.print_exc()
            sys.stderr.flush()
            os.kill(parent, signal.SIGKILL)  # else process 0 would wait for it
    finally:
        os._exit(0)
