import numpy


class NumpyModel:
    def __init__(self, random):
        self.matrix = random.randn(4000, 100)

    def forward(self):
        return abs(numpy.linalg.qr(self.matrix, mode="r"))
