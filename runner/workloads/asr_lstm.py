"""asr-lstm: the single-layer networks of Braun 2018 (arXiv 1806.01818; stefbraun/rnn_benchmarks, commit eb6358a).

123 filter-bank features, 320 LSTM units, 10 classes without a bias, cross entropy on the last step, Adam with rate
1e-3 and epsilon 1e-8. Aligned choices: one bias, forget bias 1, the data drawn once with the original's seed 11.
"""

CASES = tuple(
    {
        "workload": "asr-lstm",
        "name": name,
        "cell": "lstm",
        "steps": steps,
        "batch": batch,
        "inputs": 123,
        "hidden": 320,
        "classes": 10,
        "forget_bias": 1.0,
        "loss": "ce",
        "optimizer": "adam",
        "rate": 1e-3,
        "seed": 11,
    }
    for name, steps, batch in (("1x320-ce-short", 100, 64), ("1x320-ce-long", 1000, 32))
)
