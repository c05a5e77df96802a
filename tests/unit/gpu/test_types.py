"""The generation of a GPU, from its compute capability."""

from runner.gpu.types import architecture


def test_a_capability_names_its_generation() -> None:
    known = {
        (3, 5): 2,
        (5, 2): 3,
        (6, 1): 4,
        (7, 0): 5,
        (7, 2): 5,
        (7, 5): 6,
        (8, 0): 7,
        (8, 6): 7,
        (8, 9): 8,
        (9, 0): 9,
    }
    assert {capability: architecture(capability) for capability in known} == known
    assert architecture((10, 0)) == architecture((12, 0)) == 10
    assert architecture((2, 0)) == 0
