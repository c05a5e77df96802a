import numpy


class NumpyModel:
    def __init__(self, random):
        self.signal = random.randn(64)

    def forward(self):
        return abs(numpy.fft.fft(self.signal))
