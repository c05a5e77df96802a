class TensorFlowModel:
    def __init__(self, random):
        import tensorflow as tf

        self.network = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(8,))])
        self.network.set_weights([random.rand(8, 4).astype("float32"), random.rand(4).astype("float32")])
        self.example = random.rand(1, 8).astype("float32")

    def forward(self):
        return self.network.predict(self.example)
