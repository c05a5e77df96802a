"""Theano, and Lasagne 0.1 if it is installed: 0.8 to 1.0 on a CPU, 0.9 to 1.0 on a GPU by the gpuarray back-end.

``scan``, ``lasagne`` and ``cudnn`` have one recurrent network each; one more class, named in the tuple at the
end of its file, adds one.
``network`` has what they share, ``updates`` the clipping and the optimisers, ``published`` the original programs.

Theano compiles C code, which requires g++ and Python's headers. Without a BLAS to link, it calls that of NumPy through
NumPy, and a product takes up to 1.5 times as long. The adapter links the OpenBLAS in NumPy's wheels, so that the lock
pins it and a process has one BLAS; ``facts`` names it.
"""

import glob
import os
import tempfile

from ..described import known
from . import cudnn
from . import lasagne
from . import network as networks
from . import profile  # noqa: F401  see ``harness.profiling``
from . import scan
from .model import UserModel

FRAMEWORK = "theano"
# Theano reads its flags, and with them the folder of its compiler cache, when it is imported, and does not let them
# change later; a child gets its folder after the fork.
FORK_AFTER_IMPORT = False
IMPLEMENTATIONS = scan.NETWORKS + lasagne.NETWORKS + cudnn.NETWORKS + (UserModel,)


def load(threads: "int") -> "str":
    """Add flags to THEANO_FLAGS and import Theano; touches no device; returns its version."""
    os.environ["THEANO_FLAGS"] = flags(os.environ.get("THEANO_FLAGS", ""), threads, blas())
    import theano

    if int(theano.__version__.split(".")[0]) >= 1:
        enable_cache(theano.gof.op.PureOp)
    return str(theano.__version__)


def enable_cache(kind: "type") -> "None":
    """Make Theano cache the code of operations without parameters.

    Theano 1.0 includes ``__props__`` in the version of the code and takes an empty one for a missing version: it then
    compiles such code in every process, eight modules of one or two seconds each for a network. 1.0 reads the attribute
    for nothing else after a class is created, when it derives how operations compare. Earlier releases read it at every
    comparison.
    """
    if vars(kind).get("__props__") == ():
        del kind.__props__
    for derived in kind.__subclasses__():
        enable_cache(derived)


def flags(given: "str", threads: "int", ldflags: "str") -> "str":
    """Return THEANO_FLAGS: the given ones, then those of the harness that they do not set.

    The device is chosen when a program is built. OpenMP is for element-wise operations on large arrays.

    >>> flags("base_compiledir=/c,floatX=float64", 2, "")
    'base_compiledir=/c,floatX=float64,device=cpu,openmp=True'
    """
    defaults = [
        ("base_compiledir", os.path.join(tempfile.gettempdir(), "theano")),
        ("floatX", "float32"),
        ("device", "cpu"),
        ("openmp", str(threads > 1)),
    ]
    if ldflags:
        defaults.append(("blas.ldflags", ldflags))
    settings = [setting for setting in given.split(",") if setting]
    names = [setting.partition("=")[0] for setting in settings]
    return ",".join(settings + ["{}={}".format(name, value) for name, value in defaults if name not in names])


def blas() -> "str":
    """Return the linker flags for the OpenBLAS in NumPy's wheel; empty if it has none that Theano can link.

    NumPy's wheels have it up to 1.21.
    """
    import numpy

    paths = glob.glob(os.path.join(os.path.dirname(numpy.__file__), ".libs", "libopenblasp*.so"))
    if not paths or set(paths[0]) & set(" ,"):  # Theano's flags cannot contain either character
        return ""
    folder, name = os.path.split(paths[0])
    return "-L{} -l{}".format(folder, name[len("lib") : -len(".so")])


def linked(ldflags: "str") -> "str":
    """Return the libraries in linker flags, without their folders.

    >>> linked("-L/venv/numpy/.libs -lopenblasp-r0-34a18dc3.3.7")
    'openblasp-r0-34a18dc3.3.7'
    """
    return " ".join(flag[2:] for flag in ldflags.split() if flag.startswith("-l")) or "NumPy's, through NumPy"


def lasagne_version() -> "dict":
    """Return the version of Lasagne; raises ImportError where it is not installed."""
    import lasagne

    return {"lasagne": str(lasagne.__version__)}


def facts(device: "str") -> "dict":
    """Return versions, the compiler, the linked BLAS, and the flags that times depend on."""
    import theano

    if device == "cuda":
        networks.use_cuda()
    described = {
        "version": str(theano.__version__),
        "blas": linked(theano.config.blas.ldflags),
        "openmp": bool(theano.config.openmp),
        "optimizer": str(theano.config.optimizer),
        "floatX": str(theano.config.floatX),
        "adam": "written out",
    }
    described.update(known(lambda: {"compiler": theano.gof.cmodule.gcc_version()}))
    described.update(known(lambda: {"source_revision": theano.version.git_revision}))
    described.update(known(lasagne_version) or {"lasagne": None})
    if device == "cuda":
        context = theano.gpuarray.type.get_context(None)
        described.update(device=context.devname, cudnn=theano.gpuarray.dnn.version())
    return described
