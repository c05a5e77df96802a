"""What every implementation promises; one class in one adapter file adds one.

An adapter module imports its framework only inside ``load``, so the planner can read its classes where the
framework is missing. It provides:

    FRAMEWORK              the name used in matrix.yaml
    IMPLEMENTATIONS        its classes, in the order they are shown
    FORK_AFTER_IMPORT      False where a process may not fork once the framework is imported
    load(threads)          import the framework, set thread counts, touch no device; returns its version
    facts(device)          versions and device names, called in a child
"""

from ..cases.recurrent import is_pure

SIXTEEN_BITS = ("fp16", "bf16")
LOSS_SCALE = 1024.0
"""What the loss of a network in fp16 is multiplied by before the backward pass, and its gradients are divided by.

A power of two, so that neither rounds. Fixed, so that the first step is the one that is checked. The largest gradient of
the shipped cases, of the bias of a class in CTC, is below T/B = 50 for T steps and a batch B, and 50 * 1024 is below the
largest number of fp16, 65504; GradScaler's first scale of 65536 would have to be halved six times for it.
"""


class Implementation(object):
    """One way a framework offers to compute a recurrent network, on one case and one device.

    Axes: T steps, B batch, I inputs, H hidden units, L layers, D directions (2 where ``bidirectional``), C classes,
    V words, N labels, G gates (4 in an LSTM, 3 in a GRU, 1 in a plain RNN, ``rnn`` or ``relu``).

    Canonical arrays are float32. Layer k has ``layer<k>/kernel`` (I_k, G*H), ``layer<k>/recurrent`` (H, G*H) and
    ``layer<k>/bias`` (G*H,), where I_0 = I and I_k = D*H above; the way back of a bidirectional layer has the same
    under ``layer<k>/reverse/``, and a layer gives the two side by side, (T, B, 2*H), forward first. ``output/kernel``
    is (D*H, C) where there are classes, ``output/bias`` (C,) where ``output_bias``, ``embedding`` (V, I) where
    ``vocabulary``.

    LSTM: gates i, f, g, o; the bias of f holds the case's forget bias already. GRU: gates r, z, n with
    n = tanh(x W_n + b_n + r * (h U_n)) and h' = (1 - z) * n + z * h, as in cuDNN with its second bias at zero. RNN:
    tanh, in ``relu`` max(0, x) in its place. All states start at zero.

    ``loss``     what the network says (``outputs``)           ``target``             the loss
    ``mse``      last hidden state (B, D*H)                    (B, D*H) float32       mean of squares over all
    ``mse-all``  every hidden state (T, B, D*H)                (T, B, D*H) float32    mean of squares over all
    ``ce``       logits of the last step (B, C)                (B,) int32             mean cross entropy over B
    ``ctc``      logits of every step (T, B, C), blank 0       (B, N) int32, 1..C-1   mean over B of -log p, in nats
    ``lm``       logits of every step (T, B, C)                (T, B) int32           mean cross entropy over T*B
    ``bce``      logit of the mean over time (B, 1)            (B,) float32, 0 or 1   mean sigmoid cross entropy

    ``x`` is (T, B, I) float32, or (T, B) int32 words where ``vocabulary``. Where ``ragged``, ``lengths`` (B,) int32,
    ascending, says how many steps of each sample count: the way back starts at each sample's own end, and what is said
    behind it is ignored. The last time step of a bidirectional layer has seen one frame on its way back.

    ``optimizer``: ``sgd``, or ``adam`` with beta 0.9 and 0.999 and epsilon 1e-8 (Kingma and Ba 2015, algorithm 1).
    Gradients are first cut to +-``clip_value``, then each tensor to the norm ``clip_each``, then all together to the
    norm ``clip_norm``, where these are above 0. Where ``carry``, a step of ``train`` starts from the states the last
    one ended with, without a gradient to them; ``reset`` puts them back to zero, and everything but ``train`` starts
    from zero and leaves them alone.

    ``fp16`` and ``bf16`` of a network are the framework's own mixed precision: weights, what the optimiser reads and
    keeps, and the loss are float32, and the framework decides which operations compute in 16 bits. In a case of
    ``cases.recurrent.is_pure``, weights, data, states and gradients have 16 bits too, and the loss reads the states in
    float32. In both, fp16 multiplies the loss by LOSS_SCALE before the backward pass, on every device; ``train`` divides
    the gradients by it before it clips and updates, by the framework's own means where it has some, and ``backward``
    leaves them scaled. bf16 scales nothing. ``outputs``, ``loss`` and ``gradients`` return float32, unscaled.
    """

    slug = ""
    kind = ""  # flexible, fused or vendor
    uses_cudnn = False  # on a GPU
    oldest_gpu = {}  # precision -> the lowest compute capability that its library computes it on; others: any
    cells = ("lstm",)
    since = (0,)
    before = None
    devices = ("cpu", "cuda")
    precisions = ("fp32", "tf32")  # and those of ``mixed`` and ``pure``
    mixed = {}  # device -> precision of 16 bits -> the first release in which mixed precision is measured
    pure = {}  # the same for weights in 16 bits
    description = None  # how a network in 16 bits computes, in a few words for the record; set when it is built
    losses = ("mse", "mse-all", "ce", "ctc", "lm", "bce")
    ragged = True  # keeps to each sample's own length
    bidirectional = True
    originals = ()  # workloads whose original program ``original`` repeats, quirks and all
    asynchronous = False  # a call may return before it has ended on a CPU, too
    waits_for_device = False  # a call on a GPU returns only when the GPU has finished it
    packages = ()  # that it imports beside the framework, by their names in a lock
    compile_seconds = (1.0, 1.0)  # of one layer on two cores of 2024: with empty caches and with warm ones; estimates

    @classmethod
    def kind_in(cls, release: "tuple") -> "str":
        """Return the kind that it is in a release, a tuple of numbers."""
        return cls.kind

    @classmethod
    def uses_cudnn_in(cls, release: "tuple") -> "bool":
        """Return whether it calls cuDNN on a GPU in a release, a tuple of numbers."""
        return cls.uses_cudnn

    @classmethod
    def compiling(cls) -> "tuple":
        """Return ``compile_seconds`` as it is with what is installed here."""
        return cls.compile_seconds

    @staticmethod
    def compilations() -> "dict":
        """Return what the framework's compiler has counted in this process, see ``harness.compilations``."""
        return {}

    @classmethod
    def concerns(cls, case: "dict") -> "bool":
        """Say whether the case is of this class's kind at all; one that is not is left out of the plan, without a skip."""
        return case.get("cell") in cls.cells

    @classmethod
    def slugs(cls, case: "dict") -> "tuple":
        """Return the slugs under which it computes a case that it ``concerns``; a user's network may have variants."""
        return (cls.slug,)

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """Return (skip code, reason) where this cannot run by what is known beforehand, else None.

        ``release`` is the framework's version as a tuple of numbers; a floating ``2.*`` is (2, inf).
        """
        if case.get("cell") not in cls.cells:
            return "framework-lacks", "{} computes {} only".format(cls.slug, " and ".join(cls.cells))
        if case.get("protocol") == "published" and case["workload"] not in cls.originals:
            return "framework-lacks", "{} repeats no original program of {}".format(cls.slug, case["workload"])
        if case["loss"] not in cls.losses:
            return "framework-lacks", "{} has no {} loss".format(cls.slug, case["loss"])
        if case["ragged"] and not cls.ragged:
            return "framework-lacks", "{} cannot keep to each sample's own length".format(cls.slug)
        if case["bidirectional"] and not cls.bidirectional:
            return "framework-lacks", "{} runs one way only".format(cls.slug)
        if precision in SIXTEEN_BITS:
            return cls.lacks_release(release, device) or cls.lacks_16_bits(case, release, device, precision)
        return cls.lacks_here(release, device, precision)

    @classmethod
    def lacks_16_bits(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """Return what ``lacks`` does of a network in fp16 or bf16, which this class has on the device in fp32."""
        pure = is_pure(case)
        if case.get("protocol") == "published" and not pure:
            return "precision-lacks", "the original program of {} computes in fp32".format(case["workload"])
        means = "with weights in 16 bits" if pure else "in mixed precision"
        processor = "a CPU" if device == "cpu" else "a GPU"
        first = (cls.pure if pure else cls.mixed).get(device, {}).get(precision)
        if first is None:
            return "precision-lacks", "{} does not compute {} {} on {}".format(cls.slug, precision, means, processor)
        if release < first:
            since = ".".join(map(str, first))
            text = "{} {} on {} is measured from release {} on"
            return "precision-lacks", text.format(precision, means, processor, since)
        return None

    @classmethod
    def lacks_here(cls, release: "tuple", device: "str", precision: "str") -> "tuple":
        """Return what ``lacks`` does, whatever the case is."""
        skip = cls.lacks_release(release, device)
        if skip is None and (precision not in cls.precisions or (precision == "tf32" and device == "cpu")):
            return "precision-lacks", "{} does not compute {} on {}".format(cls.slug, precision, device)
        return skip

    @classmethod
    def lacks_release(cls, release: "tuple", device: "str") -> "tuple":
        """Return what ``lacks`` does, whatever the case and the precision are."""
        if release < cls.since:
            return "framework-lacks", "{} came with {}".format(cls.slug, ".".join(map(str, cls.since)))
        if cls.before is not None and release >= cls.before:
            return "framework-lacks", "{} went with {}".format(cls.slug, ".".join(map(str, cls.before)))
        if device == "cpu" and device not in cls.devices:
            return "needs-gpu", "{} has no CPU kernel".format(cls.slug)
        if device not in cls.devices:
            return "framework-lacks", "{} computes on a CPU only".format(cls.slug)
        return None

    def __init__(self, case, data, weights, device, precision):
        """Build the network and move ``data`` and ``weights`` to the device; it stands as after ``reset``.

        Args:
            case: the sizes, the loss, the optimiser and its rate.
            data: ``x``, ``target`` and, where ``ragged``, ``lengths``.
            weights: canonical arrays by name.
            device: ``cpu`` or ``cuda``.
            precision: ``fp32``; ``tf32``, which lets the device round the products; ``fp16`` or ``bf16``.
        """

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """Return what the published protocol times: the original program of the case's workload, for this class.

        It has ``train``, ``loss`` and ``synchronize``, of ``forward`` and ``backward`` those that the original timed, and
        ``weights``, how many numbers it trains.
        One call does what the original's clock saw, copies from and to the host included. Arguments as in ``__init__``;
        ``weights`` are there for their shapes: the original starts from its library's own.
        """
        raise NotImplementedError

    def reset(self):
        """Put the canonical weights back and clear the optimiser's state."""

    def forward(self):
        """Run the network once, for inference, up to what the table above says: no gradient is kept.

        Need not wait for the device.
        """

    def outputs(self):
        """Return what ``forward`` computes at the present weights as an array, in the shape of the table above.

        It runs the same program object that ``forward`` runs, so that what is checked is what is timed.
        """

    def backward(self):
        """Run forward, loss and the gradients of all weights once; nothing is updated. Need not wait for the device.

        This is the phase ``gradient``.
        """

    def train(self):
        """Run forward, loss, gradients and update once. Need not wait for the device."""

    def loss(self):
        """Return the loss of the last ``train``, as it was before that step's update."""

    def gradients(self):
        """Return canonical name -> gradient of the loss at the present weights; nothing is updated."""

    def synchronize(self):
        """Wait until the device has done all it was asked."""

    def device_timer(self, call: "object", calls: "int") -> "object":
        """Return (method, function that returns the seconds of the device for one of ``calls`` calls in a row).

        The method is a word for the record. The time does not include what the host takes to start the calls. None where
        the framework shows no events, or the device is a CPU.
        """

    def why_cold(self):
        """Return why another process compiles again what this one has compiled, a sentence; empty where it need not.

        It is called after the first call. The phase ``compile-warm`` then has no time, for that would be one of ``compile``.
        """
        return ""

    def peak_bytes(self):
        """Return the most bytes that the framework has held on the device in this process; None where it does not tell."""


def gates(array, order, source="ifgo"):
    """Reorder the gate blocks of the last axis, from the canonical order ``ifgo`` to ``order`` (or back).

    >>> import numpy
    >>> gates(numpy.array([1, 2, 3, 4]), "igfo").tolist()
    [1, 3, 2, 4]
    """
    import numpy

    if order == source or len(source) == 1:
        return array
    blocks = numpy.split(array, len(source), axis=-1)
    return numpy.concatenate([blocks[source.index(gate)] for gate in order], axis=-1)
