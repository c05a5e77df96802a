"""Theano, with Lasagne 0.1 where it is installed: 0.8 to 1.0 on a CPU, 0.9 to 1.0 on a GPU by the gpuarray back-end.

Theano compiles C code, which needs g++ and Python's headers. Linked with no BLAS it calls NumPy's, through NumPy: a
product then costs up to half as much again. The adapter links the OpenBLAS that NumPy's wheels bring, so that the lock
pins it and a process has one BLAS; what was linked is a fact of every record.
"""

import glob
import os
import tempfile

from ...cases.recurrent import ways
from . import network as networks
from . import published
from .cudnn import TheanoCudnn
from .lasagne import LasagneLstmLayer

FRAMEWORK = "theano"
# Theano reads its flags, and with them the folder of its compiler cache, when it is imported, and lets none of them
# change afterwards; a child learns its folder after the fork.
FORK_AFTER_IMPORT = False


def load(threads: "int") -> "str":
    """Add our flags to THEANO_FLAGS, import Theano, touch no device; return its version."""
    os.environ["THEANO_FLAGS"] = flags(os.environ.get("THEANO_FLAGS", ""), threads, blas())
    import theano

    if int(theano.__version__.split(".")[0]) >= 1:
        keep_compiled(theano.gof.op.PureOp)
    return str(theano.__version__)


def keep_compiled(kind: "type") -> "None":
    """Let Theano's cache keep the code of operations that have no parameters.

    Theano 1.0 puts ``__props__`` among the versions of the code, and takes an empty one for a version that is missing:
    such code is compiled anew in each process, eight modules of a second or two for a network. Nothing else reads the
    attribute there once a class is made: how operations compare was made from it. Before 1.0 it was looked at each time.
    """
    if vars(kind).get("__props__") == ():
        del kind.__props__
    for derived in kind.__subclasses__():
        keep_compiled(derived)


def flags(given: "str", threads: "int", ldflags: "str") -> "str":
    """Return THEANO_FLAGS: what was given, then ours where it does not say otherwise.

    The device is chosen when a program is built. OpenMP serves element-wise operations on large arrays.

    >>> flags("base_compiledir=/c,floatX=float64", 2, "")
    'base_compiledir=/c,floatX=float64,device=cpu,openmp=True'
    """
    own = [
        ("base_compiledir", os.path.join(tempfile.gettempdir(), "theano")),
        ("floatX", "float32"),
        ("device", "cpu"),
        ("openmp", str(threads > 1)),
    ]
    if ldflags:
        own.append(("blas.ldflags", ldflags))
    parts = [part for part in given.split(",") if part]
    names = [part.partition("=")[0] for part in parts]
    return ",".join(parts + ["{}={}".format(name, value) for name, value in own if name not in names])


def blas() -> "str":
    """Return the linker's flags for the OpenBLAS inside NumPy's wheel; empty where it has none, as in 1.22 and later."""
    import numpy

    found = glob.glob(os.path.join(os.path.dirname(numpy.__file__), ".libs", "libopenblasp*.so"))
    if not found or set(found[0]) & set(" ,"):  # neither can stand in Theano's flags
        return ""
    folder, name = os.path.split(found[0])
    return "-L{} -l{}".format(folder, name[len("lib") : -len(".so")])


def linked(ldflags: "str") -> "str":
    """Return the libraries among the linker's flags, without the folders they lie in.

    >>> linked("-L/venv/numpy/.libs -lopenblasp-r0-34a18dc3.3.7")
    'openblasp-r0-34a18dc3.3.7'
    """
    return " ".join(part[2:] for part in ldflags.split() if part.startswith("-l")) or "NumPy's, through NumPy"


def facts(device: "str") -> "dict":
    """Return versions, the compiler, the BLAS that is linked, and the flags that time depends on."""
    import theano

    if device == "cuda":
        networks.use_cuda()
    found = {
        "version": str(theano.__version__),
        "compiler": theano.gof.cmodule.gcc_version(),
        "blas": linked(theano.config.blas.ldflags),
        "openmp": bool(theano.config.openmp),
        "optimizer": str(theano.config.optimizer),
        "floatX": str(theano.config.floatX),
        "adam": "written out",
    }
    try:
        import lasagne

        found["lasagne"] = str(lasagne.__version__)
    except ImportError:
        found["lasagne"] = None
    if device == "cuda":
        context = theano.gpuarray.type.get_context(None)
        found.update(device=context.devname, cudnn=theano.gpuarray.dnn.version())
    return found


class TheanoScan(networks.Network):
    """Layers as ``theano.scan``: one product for the inputs of all steps before it, one with H x G*H in every step.

    The design of glample/rnn-benchmarks (commit 7b737bf, ``fastlstm``) with the canonical gates.
    """

    slug = "theano-scan"
    kind = "flexible"
    cells = ("lstm", "rnn", "relu", "gru")
    originals = ("rnn-step", "rnn-sequence")
    compile_seconds = (60.0, 3.0)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        program = published.Step if case["workload"] == "rnn-step" else published.Sequence
        return program(case, data, device)

    def layers(self, x, states):
        """See Network."""
        import theano.tensor as T

        names = ways(self.case)
        width = len(self.state_shapes()) // self.case["layers"] // len(names)
        states, last = list(states), []
        for k in range(self.case["layers"]):
            sides = []
            for way in names:
                first, states = states[:width], states[width:]
                traces = self._layer("layer{}{}".format(k, way), x, first)
                sides.append(traces[0])
                last += [trace[0 if way != "/" else -1] for trace in traces]
            x = T.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
        return x, last

    def _layer(self, name, x, states):
        """Return the trace (T, B, H) of each state, in the order of time."""
        import theano
        import theano.tensor as T

        steps, batch = self.case["steps"], self.case["batch"]
        back = name.endswith("reverse/")
        kernel, recurrent, bias = (self.weights[name + part] for part in ("kernel", "recurrent", "bias"))
        z = T.dot(x.reshape((steps * batch, x.shape[2])), kernel) + bias
        z = networks.free(z.reshape((steps, batch, z.shape[1])))
        step = {"lstm": self._lstm, "gru": self._gru, "rnn": self._rnn, "relu": self._relu}[self.case["cell"]]
        traces, _ = theano.scan(step, z, list(states), [recurrent], go_backwards=back, strict=True)
        traces = traces if isinstance(traces, list) else [traces]
        return [trace[::-1] for trace in traces] if back else traces

    def _parts(self, z, count):
        hidden = self.case["hidden"]
        return [z[:, k * hidden : (k + 1) * hidden] for k in range(count)]

    def _lstm(self, z, h, c, recurrent):
        import theano.tensor as T

        i, f, g, o = self._parts(z + T.dot(h, recurrent), 4)
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return T.nnet.sigmoid(o) * T.tanh(c), c

    def _gru(self, z, h, recurrent):
        import theano.tensor as T

        product = T.dot(h, recurrent)
        (zr, zz, zn), (pr, pz, pn) = self._parts(z, 3), self._parts(product, 3)
        r, u = T.nnet.sigmoid(zr + pr), T.nnet.sigmoid(zz + pz)
        return (1 - u) * T.tanh(zn + r * pn) + u * h

    def _rnn(self, z, h, recurrent):
        import theano.tensor as T

        return T.tanh(z + T.dot(h, recurrent))

    def _relu(self, z, h, recurrent):
        import theano.tensor as T

        return T.nnet.relu(z + T.dot(h, recurrent))


IMPLEMENTATIONS = (TheanoScan, LasagneLstmLayer, TheanoCudnn)
