class JaxModel:
    def __init__(self, random):
        import jax

        def loss(weights, inputs):
            for _ in range(60):
                inputs = jax.numpy.tanh(inputs @ weights) + jax.numpy.exp(-inputs * inputs)
            return inputs.mean()

        self.weights = jax.numpy.asarray(random.randn(16, 16) / 8, "float32")
        self.inputs = jax.numpy.asarray(random.randn(8, 16), "float32")
        self.gradient = jax.jit(jax.grad(loss))

    def forward(self):
        return self.gradient(self.weights, self.inputs)
