"""Which package of an index has a module, for hints about imports that an environment lacks."""

PACKAGES = {
    "Crypto": "pycryptodome",
    "Levenshtein": "levenshtein",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "caffe2": "torch",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "faiss": "faiss-cpu",
    "functorch": "torch",
    "git": "gitpython",
    "google": "protobuf",
    "haiku": "dm-haiku",
    "hydra": "hydra-core",
    "imblearn": "imbalanced-learn",
    "mpl_toolkits": "matplotlib",
    "pkg_resources": "setuptools<81",
    "pylab": "matplotlib",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "torchgen": "torch",
    "tree": "dm-tree",
    "umap": "umap-learn",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Module -> the package that has it, where their names differ.

setuptools without ``pkg_resources``: its own warning says "pin to Setuptools<81",
https://setuptools.pypa.io/en/latest/pkg_resources.html.
"""

SAME_NAME = frozenset(
    "accelerate albumentations chex datasets diffusers distrax einops equinox evaluate fire flax gym gymnasium h5py huggingface_hub "
    "imageio joblib jax jaxlib jaxtyping keras keras_cv keras_nlp kornia librosa lightning matplotlib monai natsort networkx nltk "
    "numba numexpr numpy omegaconf onnx onnxruntime opt_einsum optax pandas peft pgmpy psutil pyarrow pydantic "
    "pytorch_lightning regex requests rich safetensors scipy seaborn sentencepiece sentence_transformers simplejson six spacy statsmodels "
    "sympy tabulate tensorboard tensorboardX tensorflow tensorflow_addons tensorflow_datasets tensorflow_probability tensorstore "
    "termcolor tf_keras theano thop tiktoken timm tokenizers toml torch torch_geometric torchaudio torchdata torchmetrics torchtext "
    "torchvision tqdm transformers typeguard typing_extensions vit_pytorch wandb xformers yacs".split()
)
"""Modules whose package has their name, ``-`` in place of ``_``."""


def package_of(module: "str") -> "str":
    """Return the package that has a module by its first part; empty where that is not known.

    >>> package_of("yaml"), package_of("torch_geometric"), package_of("mypkg")
    ('pyyaml', 'torch-geometric', '')
    """
    if module in PACKAGES:
        return PACKAGES[module]
    return module.replace("_", "-").lower() if module in SAME_NAME else ""
