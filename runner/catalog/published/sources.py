"""The sources of the published figures: who published them, when and where, and what they timed."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSource:
    """A publication, or one version of it.

    Attributes:
        title: author and title.
        year: the year of this version.
        url: the paper, or a repository at a commit.
        timed: what a figure is the time of, and what it averages over.
        spread: what the spread is, and where it is from; empty if the source has none.
        protocol: ``published`` if cells of that protocol repeat the original program; otherwise what the original ran.
    """

    title: str
    year: int
    url: str
    timed: str
    spread: str = ""
    protocol: str = "published"

    @property
    def citation(self) -> str:
        """Title, year and address in one line."""
        return f"{self.title}, {self.year}, {self.url}"


_BRAUN = "Braun, LSTM Benchmarks for Deep Learning Frameworks"
_BRAUN_CODE = "https://github.com/stefbraun/rnn_benchmarks/tree/eb6358a"
_BRAUN_TIMED = "a training step with the copy of the batch to the GPU; the {} of the last 400 of 500 in one process"
_THEANO = "MaximumEntropy, cudnn_rnn_theano_benchmarks"
_THEANO_CODE = "https://github.com/MaximumEntropy/cudnn_rnn_theano_benchmarks/tree/"
_BLOCK = "1,000 steps timed as one, in one process"

SOURCES: Mapping[str, PublishedSource] = {
    "braun2018": PublishedSource(
        title=f"{_BRAUN}, table 4",
        year=2018,
        url="https://arxiv.org/abs/1806.01818",
        timed=_BRAUN_TIMED.format("mean, in whole ms,"),
        spread="standard deviation of the steps: of results.csv in the repository for PyTorch on long sequences, "
        "else read off the error bars of its figures",
    ),
    "braun2018-raw": PublishedSource(
        title=f"{_BRAUN}, results.csv of the repository",
        year=2018,
        url=_BRAUN_CODE,
        timed=_BRAUN_TIMED.format("median"),
        spread="standard deviation of the steps",
    ),
    "braun2018-bars": PublishedSource(
        title=f"{_BRAUN}, read off the bars of the repository's figures, approximate",
        year=2018,
        url=_BRAUN_CODE,
        timed=_BRAUN_TIMED.format("mean"),
        spread="standard deviation of the steps, read off the error bars",
    ),
    "glample2016": PublishedSource(
        title="Lample, rnn-benchmarks",
        year=2016,
        url="https://github.com/glample/rnn-benchmarks/tree/7b737bf",
        timed=f"a step, printed for each example of the batch; {_BLOCK}",
    ),
    "maximumentropy2016": PublishedSource(
        title=_THEANO,
        year=2016,
        url=f"{_THEANO_CODE}0bd1856",
        timed=f"a forward pass, or one with gradients and no update, printed for each example of the batch; {_BLOCK}",
    ),
    "maximumentropy2016-first": PublishedSource(
        title=f"{_THEANO}, its first figures",
        year=2016,
        url=f"{_THEANO_CODE}de8d723",
        timed="a forward pass, or one with gradients and no update, of a loss that the text says is of the last hidden "
        f"state; printed for each example of the batch; {_BLOCK}",
    ),
    "maximumentropy2017": PublishedSource(
        title=f"{_THEANO}, its last figures",
        year=2017,
        url=f"{_THEANO_CODE}00fd5a4",
        timed=f"a forward pass, or one with gradients and no update, printed for each example of the batch; {_BLOCK}",
    ),
    "deepbench2017": PublishedSource(
        title="Baidu Research, DeepBench, the tables of June 28 for NVIDIA's GPUs",
        year=2017,
        url="https://github.com/baidu-research/DeepBench",
        timed="one call of cuBLAS, cuSPARSE or cuDNN; the mean of many after one, in whole microseconds, of recurrent "
        "layers forward and back together",
        protocol="calls of cuBLAS, cuSPARSE and cuDNN",
    ),
    "tfcudnnlstm2018": PublishedSource(
        title="Choe, TFCudnnLSTM",
        year=2018,
        url="https://github.com/yjchoe/TFCudnnLSTM/tree/2508169",
        timed="a training step of 35 words in 20 sequences; a rounded average over part of a run",
    ),
}
"""Name, as in ``published:NAME`` -> source."""
