"""The sum of several processes' arrays by ``torch.distributed``, with its back-end for CPUs, gloo."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import traceback

from ..watch import PR_SET_PDEATHSIG
from ..workloads import deepbench_allreduce
from . import kernels
from . import torch_compat as compat

AGAIN = 16  # calls, then the first numbers are put back: sums of sums of 32 processes pass what single precision holds at 25


class Part(object):
    """One process's array, and the group that it is in; all processes make their calls in step."""

    def __init__(self, case, rank, folder, array):
        """Join the group, which waits until all have; a process has one thread of PyTorch's."""
        compat.torch.set_num_threads(1)
        self.distributed = compat.torch.distributed
        self.own = compat.torch.from_numpy(array)
        self.sums = self.own.clone()
        self.count = 0
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # a container without a network cannot look its own name up
        place = "file://" + os.path.join(folder, "group")
        self.distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=case["chips"])

    def reduce(self):
        """Sum all processes' arrays up; each has the sum then."""
        if self.count % AGAIN == 0:
            self.sums.copy_(self.own)
        self.count += 1
        self.distributed.all_reduce(self.sums)


class AllReduce(kernels.Kernel):
    """``torch.distributed.all_reduce`` in place, over as many processes as the case has chips; process 0 is timed.

    The others are forked before PyTorch starts a thread. They make the same calls until process 0 is gone.
    """

    slug = "allreduce-gloo"
    workload = "deepbench-allreduce"
    devices = ("cpu",)
    precisions = ("fp32",)
    since = (1, 0)  # torch.distributed as it is since

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, why there is none over GPUs."""
        if cls.concerns(case) and device == "cuda":
            return "framework-lacks", "a sum over GPUs wants several of them, and a case stays on one"
        return super(AllReduce, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        folder = tempfile.mkdtemp(prefix="all-reduce-")
        for rank in range(1, case["chips"]):
            if os.fork() == 0:
                other(case, rank, folder)
        self.part = Part(case, 0, folder, data["x"])
        self.part.reduce()
        shutil.rmtree(folder, ignore_errors=True)  # not before a first sum, for others may still be joining

    def forward(self):
        """See Implementation."""
        self.part.reduce()

    def result(self, phase):
        """See Kernel; the sum of first numbers, which is the one after they were put back."""
        self.forward()
        while self.part.count % AGAIN != 1:
            self.forward()
        return self.part.sums.numpy()


def other(case, rank, folder):
    """Be a process of the group until process 0, which nobody outlives, is gone; never returns."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    try:
        part = Part(case, rank, folder, deepbench_allreduce.own(case, rank))
    except BaseException:  # else process 0 would wait for it
        traceback.print_exc()
        sys.stderr.flush()
        os.kill(parent, signal.SIGKILL)
        os._exit(1)
    try:
        while True:
            part.reduce()
    except RuntimeError:  # gloo: the connection is closed
        pass
    finally:
        os._exit(0)
