"""How the networks of libraries are imported and built."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.matrix.wrapper.libraries import SUBJECTS, library_subject
from runner.matrix.wrapper.named_model import LIBRARIES, parse_model

BUILT = {
    "timm:resnet18": ("torch_module", "import timm", 'timm.create_model("resnet18")'),
    "timm:a/b.c(num_classes=3)": ("torch_module", "import timm", 'timm.create_model("a/b.c", num_classes=3)'),
    "torchvision:resnet18": ("torch_module", "import torchvision", "torchvision.models.resnet18()"),
    "torchvision:vit_b_16(image_size=64)": (
        "torch_module",
        "import torchvision",
        "torchvision.models.vit_b_16(image_size=64)",
    ),
    "keras:applications.MobileNetV2": (
        "keras_model",
        "from tensorflow import keras",
        "keras.applications.MobileNetV2(weights=None)",
    ),
    "keras:applications.VGG16((64, 64, 3))": (
        "keras_model",
        "from tensorflow import keras",
        "keras.applications.VGG16((64, 64, 3), weights=None)",
    ),
    "keras:applications.VGG16(weights=None, classes=2)": (
        "keras_model",
        "from tensorflow import keras",
        "keras.applications.VGG16(weights=None, classes=2)",
    ),
}


@pytest.mark.parametrize("text", BUILT)
def test_a_network_of_a_library_is_built_with_random_weights(text: str) -> None:
    subject = library_subject(parse_model(text))
    assert (subject.kind, subject.imports, subject.build) == BUILT[text]


def test_a_configuration_of_hugging_face_travels_with_the_wrapper(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(MatrixError, match=r"there is no .*config\.json\nhint: name a configuration"):
        library_subject(parse_model(f"hf:{path}"))
    path.touch()
    subject = library_subject(parse_model(f"hf:{path}(attn_implementation='eager')"))
    assert 'FILES = ["config.json"]' in subject.imports
    assert subject.build == "transformers.AutoModel.from_config(CONFIG, attn_implementation='eager')"
    assert (subject.root, subject.name) == (tmp_path, "hf:config.json")


def test_every_library_that_can_be_named_is_known() -> None:
    assert set(SUBJECTS) == set(LIBRARIES)
