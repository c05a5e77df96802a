class TensorFlowModel:
    def __init__(self, random):
        import tensorflow as tf

        layers = [tf.keras.layers.Embedding(200000, 32, input_length=4), tf.keras.layers.Flatten()]
        self.network = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1)])
        self.network.compile("sgd", "mse")
        self.words, self.targets = random.randint(200000, size=(32, 4)), random.rand(32, 1)

    def train(self):
        return self.network.train_on_batch(self.words, self.targets)
