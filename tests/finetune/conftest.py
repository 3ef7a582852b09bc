"""Tiny models of the real Qwen3-VL classes, and examples of text and of images."""

import numpy as np
import pytest
from PIL import Image

from saber.finetune import Example


@pytest.fixture(scope="session")
def tiny_qwen_folder(tmp_path_factory, tiny_qwen_maker):
    return tiny_qwen_maker(tmp_path_factory.mktemp("qwen"), n_layers=3, default="Embed.")


@pytest.fixture(scope="session")
def deep_qwen_folder(tmp_path_factory, tiny_qwen_maker):
    """With one layer number of two digits."""
    return tiny_qwen_maker(tmp_path_factory.mktemp("qwen"), n_layers=11, default="Embed.")


@pytest.fixture
def load():
    """Function folder -> SentenceTransformer on the CPU in float32."""
    from sentence_transformers import SentenceTransformer

    def load_model(folder):
        return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})

    return load_model


@pytest.fixture
def tiny_qwen(tiny_qwen_folder, load):
    return load(tiny_qwen_folder)


@pytest.fixture(scope="session")
def text_examples():
    """Eight examples with the paper's structure: two bindings, attributes or objects exchanged."""
    words = [("red", "cup", "wet", "dog"), ("old", "tree", "blue", "boat"), ("torn", "flag", "pink", "kite")]
    words += [
        ("flat", "stone", "gold", "ring"),
        ("tall", "man", "thin", "wall"),
        ("raw", "egg", "hot", "pan"),
    ]
    words += [("long", "rope", "dark", "room"), ("soft", "bed", "green", "lamp")]
    text = "A {} {} and a {} {}."
    return [
        Example(
            f"{c} {d} and {a} {b}", text.format(a, b, c, d), text.format(c, b, a, d), text.format(a, d, c, b)
        )
        for a, b, c, d in words
    ]


@pytest.fixture(scope="session")
def image_examples():
    rng = np.random.default_rng(0)

    def image():
        return {"image": Image.fromarray(rng.integers(0, 256, (32, 64, 3), dtype=np.uint8))}

    return [Example(image(), image(), image(), image()) for _ in range(4)]
