class NumpyModel:
    def __init__(self, random):
        import numba

        @numba.njit
        def taken(values, positions):
            return values[positions]

        self.taken = taken
        self.values, self.positions = random.rand(200000), random.randint(200000, size=100000)

    def forward(self):
        return self.taken(self.values, self.positions)
