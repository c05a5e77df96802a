"""CUDA graphs: a step is recorded once, and each call replays it with one launch, without Python or PyTorch in between.

After https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs, "Whole-network capture" and "Usage with
torch.cuda.amp". A graph reads and writes the memory of its recording. So weights, inputs, targets and carried states
stay where they are, and ``reset`` writes into the optimiser's state instead of making a new optimiser.
"""

from . import capture
from . import compat
from . import training
from .cells import LstmCellBasic
from .modules import NnLstm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Recording(object):
    """A call as a CUDA graph; ``result`` is what it returned, in the memory that each replay writes.

    All recordings of a process are made on one stream, and no backward pass runs on another: autograd adds gradients on
    the stream on which a parameter was first used.
    """

    stream = None  # type: Any

    def __init__(self, call: "Callable[[], Any]", prepare: "Callable[[], None]"):
        """Record ``call``, which must not wait for the device; ``prepare`` drops gradients before each run.

        So gradients are allocated in the recording, whose backward pass then overwrites them in each replay.
        """
        cuda = compat.torch.cuda
        Recording.stream = Recording.stream or cuda.Stream()
        graph, self.result = capture.record(cuda, call, prepare, Recording.stream)
        self.replay = graph.replay


def zeros_like(states: "Any") -> "Any":
    """Return states, nested in lists and tuples, of zeros."""
    if isinstance(states, (list, tuple)):
        return type(states)(zeros_like(state) for state in states)
    return compat.torch.zeros_like(states)


def copy(target: "Any", source: "Any") -> "None":
    """Copy states, nested in lists and tuples, into others; zeros where the source is None."""
    if isinstance(target, (list, tuple)):
        for number, state in enumerate(target):
            copy(state, None if source is None else source[number])
    elif source is None:
        target.zero_()
    else:
        target.copy_(source.detach())


class Graphed(object):
    """A mix-in for networks: ``forward``, ``backward`` and ``train`` are graphs, recorded at their first call.

    A training step is one graph: forward, loss, backward, clipping and update; Adam counts its steps on the device for
    that (``capturable``). In mixed precision with fp16, the graph ends with the gradients, because GradScaler waits for
    the device in its step.

    CTC is left out: PyTorch copies its lengths from the host in each call, which cannot be recorded.
    """

    devices = ("cuda",)
    since = (1, 12)  # Adam's ``capturable``
    losses = ("mse", "mse-all", "ce", "lm", "bce")
    ragged = False
    originals = ()
    compile_seconds = (1.5, 1.5)  # to record; nothing is kept on disk
    recording = Recording
    can_be_captured = False  # a graph cannot be replayed while another one is recorded

    @classmethod
    def lacks_release(cls, release, device):
        skip = super(Graphed, cls).lacks_release(release, device)
        return ("needs-gpu", "a CUDA graph needs a GPU") if skip and skip[0] == "needs-gpu" else skip

    def __init__(self, case, data, weights, device, precision):
        self.recordings, self.optimizer = {}, None
        super(Graphed, self).__init__(case, data, weights, device, precision)

    def reset(self):
        """See Implementation; in place."""
        for name, parameter in self.parameters.items():
            parameter.data.copy_(self.first_weights[name])
        if self.optimizer is None:
            self._prepare()
        for state in self.optimizer.state.values():
            for value in state.values():
                if value is not None:  # the momentum of an SGD without momentum
                    value.zero_()
        copy(self.states, None)

    def _prepare(self):
        """Make the optimiser, and the carried states as a pass leaves them."""
        trained = [self.parameters[name] for name in sorted(self.parameters)]
        self.update_is_recorded = not self.arithmetic.waits_in_update
        options = {}
        if self.case["optimizer"] == "adam" and self.device == "cuda" and self.update_is_recorded:
            options["capturable"] = True
        self.optimizer = training.library_optimizer(self.case, trained, **options)
        clip = training.clipper(self.case, trained)
        self.update = self.arithmetic.updater(self.optimizer, self.optimizer.step, clip)
        self.states = ()
        if self.case["carry"]:
            with compat.torch.no_grad():
                self.states = zeros_like(self.infer(self.inference_x)[1])

    def _replay(self, name, call):
        """Replay the graph of a call, which is recorded if it has not been; return the result of the recording."""
        if name not in self.recordings:
            self.recordings[name] = self.recording(call, self._drop_gradients)
            if name == "train":
                self.reset()  # the warm-up has trained
        self.recordings[name].replay()
        return self.recordings[name].result

    def _record_inference(self):
        self._set_training(False)
        return compat.inference(lambda: self.infer(self.inference_x)[0])

    def _record_gradients(self, states=None):
        """Compute the loss and all gradients; return (loss, canonical name -> gradient, the last states)."""
        last_states = compat.detached(self._backward(states))
        return self.last_loss, {name: p.grad for name, p in self.parameters.items()}, last_states

    def _record_training(self):
        result = self._record_gradients(self.states or None)
        if self.states:
            copy(self.states, result[2])
        if self.update_is_recorded:
            self.update()
        return result

    def forward(self):
        return self._replay("forward", self._record_inference)

    def backward(self):
        self._replay("backward", self._record_gradients)

    def train(self):
        self.last_loss, gradients, _ = self._replay("train", self._record_training)
        if not self.update_is_recorded:
            for name, parameter in self.parameters.items():
                parameter.grad = gradients[name]
            self.update()

    def gradients(self):
        _, gradients, _ = self._replay("backward", self._record_gradients)
        return {name: self._canonical(name, gradient) for name, gradient in gradients.items()}


class NnLstmGraph(Graphed, NnLstm):
    """nn.LSTM in a CUDA graph."""

    slug = "nn-lstm-graph"


class LstmCellBasicGraph(Graphed, LstmCellBasic):
    """The LSTM cell written in Python, in a CUDA graph: the loop over the steps runs only when it is recorded."""

    slug = "lstm-cell-basic-graph"


GRAPHS = (NnLstmGraph, LstmCellBasicGraph)
