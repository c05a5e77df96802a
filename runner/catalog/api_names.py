"""The names by which people know the APIs of the frameworks: ``nn.LSTM`` rather than ``nn-lstm``."""

from collections.abc import Mapping

API_NAMES: Mapping[str, str] = {
    "nn-lstm": "nn.LSTM",
    "nn-rnn": "nn.RNN",
    "nn-gru": "nn.GRU",
    "nn-lstm-padded": "nn.LSTM, padded",
    "nn-lstm-graph": "nn.LSTM, CUDA graph",
    "lstm-cell-basic": "LSTM in Python",
    "rnn-cell-basic": "RNN in Python",
    "gru-cell-basic": "GRU in Python",
    "lstm-cell-basic-graph": "LSTM in Python, CUDA graph",
    "lstm-cell-fused": "nn.LSTMCell",
    "rnn-cell-fused": "nn.RNNCell",
    "gru-cell-fused": "nn.GRUCell",
    "torchscript-cell": "torch.jit.script",
    "compiled-cell": "torch.compile",
    "seq-lstm": "SeqLSTM",
    "seq-rnn": "Sequencer",
    "basic-lstm-cell": "BasicLSTMCell",
    "basic-rnn-cell": "BasicRNNCell",
    "lstm-cell": "LSTMCell",
    "gru-cell": "CudnnCompatibleGRUCell",
    "lstm-block-cell": "LSTMBlockCell",
    "lstm-block-fused-cell": "LSTMBlockFusedCell",
    "cudnn-lstm": "CudnnLSTM",
    "cudnn-gru": "CudnnGRU",
    "cudnn-rnn": "CudnnRNN",
    "keras-lstm": "layers.LSTM",
    "keras-lstm-cell": "layers.LSTMCell",
    "keras-cudnn-lstm": "layers.CuDNNLSTM",
    "keras-simple-rnn": "layers.SimpleRNN",
    "keras-gru": "layers.GRU",
    "keras-gru-cell": "layers.GRUCell",
    "theano-scan": "theano.scan",
    "theano-cudnn": "dnn.RNNBlock",
    "lasagne-lstm-layer": "lasagne LSTMLayer",
    "jax-scan": "lax.scan",
    "jax-cudnn-lstm": "jax.experimental.rnn",
    "numpy-loop": "NumPy loop",
    "matmul": "matmul",
    "conv2d": "conv2d",
    "sparse-coo": "sparse COO",
    "sparse-csr": "sparse CSR",
    "sparse-dense": "dense matmul",
    "allreduce-gloo": "all_reduce, Gloo",
    "allreduce-nccl": "all_reduce, NCCL",
    "model": "",
}
"""Implementation -> the name of its API. A network of the user that has no variants needs none."""


def api_name(slug: str) -> str:
    """Return the name of an API for people; a variant of a user's network has its own name.

    >>> api_name("nn-lstm"), api_name("my-variant")
    ('nn.LSTM', 'my-variant')
    """
    return API_NAMES.get(slug, slug)
