"""rnn-step: the grid of glample/rnn-benchmarks (commit 7b737bf): one layer, 30 steps, inputs as wide as the layer.

One layer of the LSTM and of the plain RNN were published; the GRU and three layers were added. Aligned choices: the
squared error is a mean (TensorFlow 0.8 summed it), the plain RNN has tanh (Theano and Torch7 used the sigmoid), one
bias, forget bias 1, plain SGD with rate 0.01.
"""

from runner.catalog.cases.recurrent import case

SIZES = tuple((batch, hidden) for batch in (32, 128) for hidden in (128, 512, 1024))

CASES = tuple(
    case(
        workload="rnn-step",
        name=f"{cell}-b{batch}-h{hidden}" if layers == 1 else f"{cell}-l{layers}-b{batch}-h{hidden}",
        cell=cell,
        layers=layers,
        steps=30,
        batch=batch,
        inputs=hidden,
        hidden=hidden,
        loss="mse",
        optimizer="sgd",
        rate=0.01,
    )
    for layers in (1, 3)
    for cell in ("lstm", "rnn", "gru")
    for batch, hidden in SIZES
)
_SLUGS = {"lstm": ("theano-scan", "basic-lstm-cell", "seq-lstm"), "rnn": ("theano-scan", "basic-rnn-cell", "seq-rnn")}
PUBLISHED = {case["name"]: _SLUGS[case["cell"]] for case in CASES if case["layers"] == 1 and case["cell"] in _SLUGS}
ORIGINAL_PHASES = ("forward", "train")
FIELD = "Recurrent layers"
UNIT = "µs/example"  # of the times in glample/rnn-benchmarks
