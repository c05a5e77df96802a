class NumpyModel:
    def __init__(self, random):
        self.left, self.right = random.rand(4000000), random.rand(4000000)

    def forward(self):
        return self.left + self.right
