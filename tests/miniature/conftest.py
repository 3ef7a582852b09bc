"""A freshly initialised miniature and its folder, and a reader of its texts that is not the package's."""

import re

import numpy as np
import pytest
import torch
from PIL import Image

from saber import training_scenes
from saber.miniature.architecture import IMAGE_SIZE, make_model, save_model, word_tokenizer
from saber.miniature.language import load_language
from saber.miniature.network import Network


@pytest.fixture(scope="session")
def tokenizer():
    return word_tokenizer()


@pytest.fixture(scope="session")
def network(tokenizer):
    """Weights that fp16 holds exactly, so that the saved folder has the very same; not to be changed."""
    torch.set_num_threads(1)
    model = make_model(tokenizer, seed=0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # livelier than at the start of training, where image tokens hardly differ
            parameter.copy_((parameter * (1.5 if parameter.ndim > 1 else 1.0)).half().float())
    return Network(model, tokenizer)


@pytest.fixture(scope="session")
def folder(network, tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "mini é 2"
    save_model(network.model, tokenizer, path)
    return path


@pytest.fixture(scope="session")
def embedder(folder):
    """The folder as sentence-transformers has it, in float32."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})


@pytest.fixture(scope="session")
def noise_images():
    """Three pictures of noise with a gradient: uint8 (3, 192, 192, 3)."""
    noise = np.random.default_rng(7).integers(0, 128, (3, IMAGE_SIZE, IMAGE_SIZE, 3))
    return (noise + np.linspace(0, 127, IMAGE_SIZE)[:, None]).astype(np.uint8)


@pytest.fixture(scope="session")
def processed(embedder):
    """Token ids and pixels of a chat with an image, made by the saved processor alone."""
    processor = embedder[0].processor

    def process(instruction, image):
        messages = [
            {"role": "system", "content": instruction},
            {"role": "user", "content": [{"type": "image"}]},
        ]
        chat = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return processor(text=[chat], images=[Image.fromarray(image)], return_tensors="pt")

    return process


@pytest.fixture(scope="session")
def read_pairs():
    """The pairs that a text states, from the order of the vocabulary's words in it alone."""
    language = load_language()
    attributes, objects = set(language.all_attributes()), set(language.all_objects())
    names = sorted(attributes | objects, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w'-])(" + "|".join(map(re.escape, names)) + r")(?![\w'-])")

    def read(text):
        found = pattern.findall(text.lower())
        n, kinds = len(found) // 2, "".join("a" if word in attributes else "o" for word in found)
        if kinds == "ao" * n:  # a red cube and a blue kite
            return list(zip(found[::2], found[1::2], strict=True))
        if kinds == "oa" * n:  # the cube is red. the kite is blue.
            return list(zip(found[1::2], found[::2], strict=True))
        if kinds == "o" * n + "a" * n:  # the cube and the kite were red and blue respectively
            return list(zip(found[n:], found[:n], strict=True))
        raise AssertionError(f"cannot read {text!r}: {kinds}")

    return read


@pytest.fixture
def blank_scenes(monkeypatch):
    """Scenes with real pairs, but stripes instead of a rendering, so that many can be made."""

    def stripes(objects, appearances, seed, size, flipped, return_owner):
        owner = np.repeat(np.arange(size) * len(objects) // size, size).reshape(size, size).astype(np.int8)
        image = np.random.default_rng(seed).integers(0, 256, (size, size, 3), np.uint8)
        return image, owner

    monkeypatch.setattr(training_scenes, "render_scene", stripes)
