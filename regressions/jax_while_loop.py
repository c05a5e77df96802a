class JaxModel:
    def __init__(self, random):
        import jax

        def largest(values):
            def advance(state):
                index, best = state
                return index + 1, jax.numpy.maximum(best, values[index])

            return jax.lax.while_loop(lambda state: state[0] < 5000, advance, (0, values[0]))[1]

        self.values = jax.numpy.asarray(random.rand(5000), "float32")
        self.largest = jax.jit(largest)

    def forward(self):
        return self.largest(self.values)
