"""rnn-sequence: the published grid of MaximumEntropy/cudnn_rnn_theano_benchmarks (commit 00fd5a4).

The loss is the squared error between all hidden states and a target; ``gradient`` computes gradients without an update.
One layer has 30 steps, three layers have 30 or 200. The LSTM was published, and the GRU in a later README; the plain
RNN was added.

Aligned choices: the scan runs over time (the original's Theano baseline scanned over the batch), all layers have
gradients (the original computed those of the last one), the inputs are multiplied by weights (the original's cuDNN
skipped it), and the initial states are zero.
"""

from runner.catalog.cases.recurrent import case

SIZES = (
    *((1, 30, batch, hidden) for batch in (32, 128) for hidden in (128, 512, 1024)),
    *((3, steps, 128, hidden) for steps in (30, 200) for hidden in (512, 1024)),
)
SMALL = (3, 30, 32, 128)  # three layers, in seconds of measuring

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
UNIT = "µs/example"  # of the times in MaximumEntropy/cudnn_rnn_theano_benchmarks
