"""The settings of Adam, as in Kingma and Ba 2015, algorithm 1; adapters read them without NumPy."""

BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-8
