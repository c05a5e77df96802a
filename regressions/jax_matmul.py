class JaxModel:
    def __init__(self, random):
        import jax

        self.sides = [jax.numpy.asarray(random.rand(256, 256), "float32") for _ in range(2)]
        self.product = jax.jit(jax.numpy.matmul)

    def forward(self):
        return self.product(*self.sides)
