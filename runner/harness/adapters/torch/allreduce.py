"""The sum of several processes' arrays by ``torch.distributed``: with gloo on a CPU, and with NCCL over GPUs."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import traceback

from ...supervisor import PR_SET_PDEATHSIG
from .. import kernel
from . import compat

RESET_INTERVAL = 16  # calls from one reset to the next: repeated sums of 32 processes overflow single precision at 25
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


class Member(compat.OnDevice):
    """One process of the group, with its array; all processes make their calls in step."""

    def __init__(self, case, rank, folder, array, device):
        """Join the group, and wait until all have joined; a process uses one thread of PyTorch, or the GPU ``rank``."""
        compat.torch.set_num_threads(1)
        self.device = device
        self.distributed = compat.torch.distributed
        self.array = compat.torch.from_numpy(array)
        if device == "cuda":
            compat.torch.cuda.set_device(rank)
            self.array = self.array.cuda()
        self.sums = self.array.clone()
        self.count = 0
        for name in INTERFACES:
            os.environ[name] = "lo"  # a container without a network cannot resolve its hostname
        backend = "nccl" if device == "cuda" else "gloo"
        url = "file://" + os.path.join(folder, "group")
        self.distributed.init_process_group(backend, init_method=url, rank=rank, world_size=case["chips"])

    def reduce(self):
        """Replace ``sums`` of each process by the sum over all processes. Need not wait for a GPU."""
        if self.count % RESET_INTERVAL == 0:
            self.sums.copy_(self.array)
        self.count += 1
        self.distributed.all_reduce(self.sums)


class AllReduce(compat.OnDevice, kernel.Kernel):
    """``torch.distributed.all_reduce`` in place, over as many processes as the case has chips; process 0 is timed.

    The others are forked before PyTorch starts a thread or uses a GPU. They make the same calls until process 0 exits.
    """

    slug = "allreduce-gloo"
    workload = "deepbench-allreduce"
    devices = ("cpu",)
    precisions = ("fp32",)
    since = (1, 0)  # the interface of torch.distributed
    can_be_captured = False  # the other processes make each call by itself

    def __init__(self, case, data, weights, device, precision):
        self.device = device
        folder = tempfile.mkdtemp(prefix="all-reduce-")
        for rank in range(1, case["chips"]):
            if os.fork() == 0:
                run_member(case, rank, folder, device)
        self.member = Member(case, 0, folder, data["x"], device)
        self.member.reduce()
        self.synchronize()
        shutil.rmtree(folder, ignore_errors=True)  # after the first sum: until then, others may still be joining

    def forward(self):
        self.member.reduce()

    def result(self, phase):
        """See Kernel; the first sum after a reset."""
        self.forward()
        while self.member.count % RESET_INTERVAL != 1:
            self.forward()
        return self.member.sums.cpu().numpy()


class NcclAllReduce(AllReduce):
    """The same over GPUs, one for each process."""

    slug = "allreduce-nccl"
    devices = ("cuda",)


def run_member(case, rank, folder, device):
    """Run a process of the group until process 0 exits, which ends all others; never returns."""
    from ...cases import deepbench_allreduce  # not at the top: the planner imports this module, and must not import NumPy

    parent, joined = os.getppid(), False
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    try:
        member = Member(case, rank, folder, deepbench_allreduce.array_of_rank(case, rank), device)
        joined = True
        while True:
            member.reduce()
            member.synchronize()
    except BaseException as error:
        if not (joined and device == "cpu" and isinstance(error, RuntimeError)):  # gloo raises it when a peer exits
            traceback.print_exc()
            sys.stderr.flush()
            os.kill(parent, signal.SIGKILL)  # otherwise, process 0 would wait for this one
    finally:
        os._exit(0)


SUMS = (AllReduce, NcclAllReduce)
