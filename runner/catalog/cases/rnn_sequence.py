"""rnn-sequence: the published grid of MaximumEntropy/cudnn_rnn_theano_benchmarks (commit 00fd5a4).

Squared error between all hidden states and a target, gradients without an update; one layer over 30 steps, three
layers over 30 and 200. Published is the LSTM; its later README adds the GRU, and the plain RNN stands beside them.
Aligned choices: time is the axis that is scanned (the original's Theano baseline scanned over the batch), gradients of
every layer (it took the last one's), inputs go through a product (cuDNN skipped it), states start at zero.
"""

from runner.catalog.cases.recurrent import case

SIZES = (
    *((1, 30, batch, hidden) for batch in (32, 128) for hidden in (128, 512, 1024)),
    *((3, steps, 128, hidden) for steps in (30, 200) for hidden in (512, 1024)),
)
SMALL = (3, 30, 32, 128)  # three layers in seconds

CASES = tuple(
    case(
        workload="rnn-sequence",
        name=f"{cell}-l{layers}-t{steps}-b{batch}-h{hidden}",
        cell=cell,
        layers=layers,
        steps=steps,
        batch=batch,
        inputs=hidden,
        hidden=hidden,
        loss="mse-all",
        optimizer="sgd",
        rate=0.01,
    )
    for cell in ("lstm", "rnn", "gru")
    for layers, steps, batch, hidden in (*SIZES, SMALL)
)
PUBLISHED = {"lstm-l{}-t{}-b{}-h{}".format(*size): ("theano-scan", "theano-cudnn") for size in SIZES}
ORIGINAL_PHASES = ("forward", "gradient")
FIELD = "Recurrent layers"
UNIT = "µs/example"  # as MaximumEntropy/cudnn_rnn_theano_benchmarks quotes times
