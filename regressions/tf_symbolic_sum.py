import numpy


class TensorFlowModel:
    def __init__(self, random):
        import tensorflow as tf

        self.terms = tf.keras.Input((1,)), tf.keras.Input((1,))

    def forward(self):
        return self.terms[0] + self.terms[1]

    def outputs(self):
        return numpy.zeros(1)
