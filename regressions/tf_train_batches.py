class TensorFlowModel:
    def __init__(self, random):
        import tensorflow as tf

        self.network = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(8,))])
        self.network.compile("sgd", "mse")
        self.batches = [(random.rand(size, 8), random.rand(size, 1)) for size in (3, 5, 7, 9)]

    def train(self):
        return sum(float(self.network.train_on_batch(*batch)) for batch in self.batches)
