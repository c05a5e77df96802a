"""rnn-step: the grid of glample/rnn-benchmarks (commit 7b737bf): one layer, 30 steps, inputs as wide as the layer.

Aligned choices: squared error as a mean (TensorFlow 0.8 summed it), tanh in the plain RNN (Theano and Torch7 used the
sigmoid), one bias, forget bias 1, plain SGD with rate 0.01.
"""

CASES = tuple(
    {
        "workload": "rnn-step",
        "name": f"{cell}-b{batch}-h{hidden}",
        "cell": cell,
        "steps": 30,
        "batch": batch,
        "inputs": hidden,
        "hidden": hidden,
        "classes": 0,
        "forget_bias": 1.0,
        "loss": "mse",
        "optimizer": "sgd",
        "rate": 0.01,
        "seed": 0,
    }
    for cell in ("lstm", "rnn")
    for batch in (32, 128)
    for hidden in (128, 512, 1024)
)
