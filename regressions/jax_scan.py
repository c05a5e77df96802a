class JaxModel:
    def __init__(self, random):
        import jax

        jax.config.update("jax_enable_x64", True)

        def advance(carry, turn):
            carry = carry @ (jax.numpy.eye(3) + turn)
            return carry / jax.numpy.sqrt((carry * carry).sum()), None

        self.turns = jax.numpy.asarray(random.randn(2000, 3, 3) * 0.1)
        self.last = jax.jit(lambda turns: jax.lax.scan(advance, jax.numpy.eye(3), turns)[0])

    def forward(self):
        return self.last(self.turns)
