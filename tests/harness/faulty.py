"""An adapter whose implementations fail in every way in which a framework can; it replaces adapters/numpy.py."""

import os
import signal
import subprocess
import sys
import time

from ..verify import reference
from .base import Implementation

FRAMEWORK = "numpy"
FORK_AFTER_IMPORT = True
CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"


def load(threads):
    """Import nothing."""
    return "1"


def facts(device):
    """Return a version, and where the driver of a GPU would keep what it compiles."""
    return {"version": "1", "driver_cache": os.environ.get("CUDA_CACHE_PATH"), "checks": os.environ.get(CHECK)}


class Sound(Implementation):
    """Works; each other class breaks something."""

    slug = "sound"
    kind = "flexible"
    cells = ("lstm", "rnn")

    def __init__(self, case, data, weights, device, precision):
        self.network = reference.Network(case, data, self.spoil(weights), "float32")
        self.reset = self.network.reset
        self.last = float("nan")

    def spoil(self, weights):
        return weights

    def forward(self):
        return self.network.predict()

    def outputs(self):
        return self.forward()

    def backward(self):
        self.network.gradients()

    def train(self):
        self.last = self.network.train()

    def loss(self):
        return self.last

    def gradients(self):
        return self.network.gradients()[1]


class OnADevice(Sound):
    """Its device is still busy when the call has returned, and has its own clock and memory."""

    slug = "on-a-device"

    busy_until = 0.0

    def train(self):
        Sound.train(self)
        self.busy_until = max(self.busy_until, time.perf_counter()) + 0.002  # calls queue

    def synchronize(self):
        time.sleep(max(0.0, self.busy_until - time.perf_counter()))

    def device_timer(self, call, calls):
        return "stopwatch", lambda: 0.0015

    def peak_bytes(self):
        return 4096


class BreaksItsClock(OnADevice):
    slug = "breaks-its-clock"

    def device_timer(self, call, calls):
        raise RuntimeError("no clock")


class WaitsItself(OnADevice):
    """As a session of TensorFlow 1.x: a call returns when the device has finished."""

    slug = "waits-itself"
    waits_for_device = True

    def train(self):
        OnADevice.train(self)
        OnADevice.synchronize(self)


class CountsItsCallers(Sound):
    """Prints the number of functions above a call, each time that it is a lower one."""

    slug = "counts-its-callers"
    fewest = 1000

    def forward(self):
        frame, callers = sys._getframe(), 0
        while frame.f_back is not None:
            frame, callers = frame.f_back, callers + 1
        if callers < self.fewest:
            self.fewest = callers
            print("callers: {}".format(callers))
        return Sound.forward(self)


class ReadsAnIterator(Sound):
    """Reads from an iterator, such as one of batches, that ends after some calls."""

    slug = "reads-an-iterator"

    def __init__(self, *given):
        Sound.__init__(self, *given)
        self.batches = iter(range(20))

    def forward(self):
        next(self.batches)
        return Sound.forward(self)


class Exits(Sound):
    slug = "exits"

    def train(self):
        print("about to leave")
        sys.stdout.flush()
        os._exit(3)


class Raises(Sound):
    slug = "raises"

    def train(self):
        raise RuntimeError("no such kernel\nsecond line")


class Crashes(Sound):
    slug = "crashes"

    def train(self):
        os.kill(os.getpid(), signal.SIGSEGV)


class Hangs(Sound):
    slug = "hangs"

    def train(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)


class Hogs(Sound):
    slug = "hogs"

    def train(self):
        self.hoard = []
        while True:
            self.hoard.append(bytearray(os.urandom(1 << 20)) * 32)


class Refuses(Sound):
    slug = "refuses-memory"

    def train(self):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")


class NotANumber(Sound):
    slug = "nan"

    def loss(self):
        return float("nan")


class Chatters(Sound):
    slug = "chatters"

    def train(self):
        os.write(1, b'{"reply": "result", "id": 1, "status": "ok"}\n\xff\xfe garbage' * 3000)
        Sound.train(self)


class WrongGate(Sound):
    slug = "wrong-gate"

    def spoil(self, weights):
        spoilt = dict(weights)
        for name in ("layer0/kernel", "layer0/recurrent", "layer0/bias"):
            hidden = weights[name].shape[-1] // 4
            spoilt[name] = weights[name].copy()
            spoilt[name][..., :hidden] = weights[name][..., hidden : 2 * hidden]
            spoilt[name][..., hidden : 2 * hidden] = weights[name][..., :hidden]
        return spoilt


class LostBias(Sound):
    slug = "lost-bias"

    def spoil(self, weights):
        return dict(weights, **{"layer0/bias": weights["layer0/bias"] * 0})


class DoubledBias(Sound):
    slug = "doubled-bias"

    def train(self):
        before = self.network.weights["layer0/bias"].copy()
        Sound.train(self)
        self.network.weights["layer0/bias"] += self.network.weights["layer0/bias"] - before


class IdleForward(Sound):
    slug = "idle-forward"

    def forward(self):
        return self.network.target * 0


class IdleGradient(Sound):
    slug = "idle-gradient"

    def backward(self):
        pass


class LateForward(Sound):
    slug = "late-forward"
    calls = 0

    def forward(self):
        self.calls += 1
        return Sound.forward(self) if self.calls < 5 else self.network.target * 0


class SlowFirst(Sound):
    slug = "slow-first"
    compiled = False

    def forward(self):
        if not self.compiled:
            time.sleep(0.3)
            self.compiled = True
        return Sound.forward(self)


class KillsServer(Sound):
    slug = "kills-server"

    def train(self):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


class LeavesProcess(Sound):
    slug = "leaves-process"

    def train(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Sound.train(self)


class NamesCaches(Sound):
    slug = "names-caches"

    def train(self):
        print([os.environ[name] for name in ("CUDA_CACHE_PATH", "TRITON_CACHE_DIR")])
        return Sound.train(self)


class KeepsNothing(Sound):
    slug = "keeps-nothing"

    def why_cold(self):
        return "it keeps no compiled programs on disk"


class CompilesLong(Sound):
    slug = "compiles-long"
    compile_seconds = (60.0, 3.0)


IMPLEMENTATIONS = tuple(
    chosen for chosen in globals().values() if isinstance(chosen, type) and issubclass(chosen, Sound)
)
