class TensorFlowModel:
    def __init__(self, random):
        import tensorflow as tf

        self.network = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(8,))])
        self.network.compile("sgd", "mse")
        self.inputs, self.targets = random.rand(64, 8), random.rand(64, 1)

    def train(self):
        return self.network.fit(self.inputs, self.targets, batch_size=16, verbose=0).history["loss"][-1]
