"""The model's folder: what anyone gets who loads it with sentence-transformers alone."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file

from saber.files import file_digest
from saber.miniature.architecture import (
    CELL,
    DEFAULT_INSTRUCTION,
    DESCRIBE,
    IMAGE_SIZE,
    N_IMAGE_TOKENS,
    SPECIAL,
    make_model,
    make_processor,
    save_model,
    word_tokenizer,
)
from saber.miniature.language import load_language
from saber.miniature.network import patches

TEXT = "A red teapot, an ice cream cone, and a golden kite."
START = "<|im_start|> system represent the user's input . <|im_end|> <|im_start|> user".split()
WORDS = ["a", "red", "teapot", ",", "an", "ice cream cone", ",", "and", "a", "golden", "kite", "."]
IMAGE = ["<|vision_start|>", *["<|image_pad|>"] * 36, "<|vision_end|>"]
END = ["<|im_end|>", "<|im_start|>", "assistant"]

STRANGER = """
import json, sys
sys.modules["saber"] = None  # "import saber" fails from here on
try:
    import saber
    sys.exit("saber can be imported")
except ImportError:
    pass
import numpy as np
from PIL import Image
from sentence_transformers import SentenceTransformer

folder, picture, text = sys.argv[1:]
model = SentenceTransformer(folder, device="cpu")
image = Image.open(picture)
inputs = {"text": text, "image": image, "both": {"image": image, "text": text}}
shown = {"prompts": model.prompts, "default": model.default_prompt_name, "tokens": {}, "vectors": {}}
for name, given in inputs.items():
    features = model.preprocess([given], prompt=model.prompts["default"])
    shown["tokens"][name] = model.tokenizer.convert_ids_to_tokens(features["input_ids"][0].tolist())
    shown["vectors"][name] = model.encode([given], show_progress_bar=False)[0].tolist()
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def stranger(folder, noise_images, tmp_path_factory):
    place = tmp_path_factory.mktemp("elsewhere")
    Image.fromarray(noise_images[0]).save(place / "picture.png")
    outside = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", STRANGER, str(folder), "picture.png", TEXT]
    done = subprocess.run(command, cwd=place, env=outside, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_chat_template_gives_these_tokens(stranger):
    assert stranger["tokens"] == {
        "text": [*START, *WORDS, *END],
        "image": [*START, *IMAGE, *END],
        "both": [*START, *IMAGE, *WORDS, *END],  # in the order given
    }


def test_the_folder_brings_its_instruction_and_gives_unit_vectors(stranger, network, noise_images):
    assert (
        stranger["default"] == "default" and stranger["prompts"]["default"] == "Represent the user's input."
    )
    vectors = {name: np.array(v) for name, v in stranger["vectors"].items()}
    for vector in vectors.values():
        assert vector.shape == (192,) and np.linalg.norm(vector) == pytest.approx(1, abs=2e-3)
    with torch.no_grad():
        text, image = network.embed_texts([TEXT])[0], network.embed_images(noise_images[:1])[0]
    # the stranger computes in half precision
    assert vectors["text"] @ text.numpy() > 0.999 and vectors["image"] @ image.numpy() > 0.999
    assert max(abs(vectors["both"] @ vectors[k]) for k in ("text", "image")) < 0.999


def test_weights_are_half_precision_and_small(folder):
    file = folder / "model.safetensors"
    assert 1e6 < file.stat().st_size <= 20e6
    weights = load_file(file)
    assert {w.dtype for w in weights.values()} == {torch.float16}
    assert sum(w.numel() for w in weights.values()) == pytest.approx(4.4e6, rel=0.02)
    assert all(torch.isfinite(w).all() for w in weights.values())


def test_saving_twice_gives_equal_bytes_and_leaves_nothing_else(network, folder, tmp_path):
    def content(path):
        return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}

    again = tmp_path / "another name"
    digest = save_model(network.model, word_tokenizer(), again)
    assert digest == file_digest(again / "model.safetensors")
    assert content(again) == content(folder)
    assert save_model(network.model, word_tokenizer(), again) == digest
    assert content(again) == content(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["another name"]
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]
    saved = load_file(again / "model.safetensors")
    for name, weight in network.model.state_dict().items():
        assert torch.equal(saved[name].float(), weight), name


def test_files_name_no_place(folder):
    for path in folder.rglob("*.json"):
        assert str(folder.parent) not in path.read_text(encoding="utf-8"), path.name


def test_initial_weights_follow_from_the_seed(tokenizer):
    one, two, other = (make_model(tokenizer, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert any(not torch.equal(one[k], other[k]) for k in one)
    assert len(one["language_model.embed_tokens.weight"]) >= len(tokenizer)


def test_every_attribute_before_every_object_is_two_tokens(tokenizer):
    words = load_language()
    names = (*words.all_attributes(), *words.all_objects())
    ids = dict(zip(names, tokenizer.convert_tokens_to_ids(list(names)), strict=True))
    assert len(set(ids.values())) == len(names) and tokenizer.unk_token_id not in ids.values()
    for end in ("", ",", "."):
        for a in words.all_attributes() if not end else ("red",):
            text = " ".join(f"{a} {o}{end}" for o in words.all_objects())
            found = tokenizer(text, add_special_tokens=False).input_ids
            marks = tokenizer.convert_tokens_to_ids([end]) if end else []
            assert found == [i for o in words.all_objects() for i in (ids[a], ids[o], *marks)], a


def test_case_makes_no_difference_and_other_words_are_unknown(tokenizer):
    assert tokenizer("A Red Ice Cream Cone").input_ids == tokenizer("a red ice cream cone").input_ids
    assert tokenizer.convert_ids_to_tokens(tokenizer("a xylograph teapots").input_ids) == [
        "a",
        "<|unknown|>",
        "<|unknown|>",
    ]


def test_special_tokens_have_their_places_and_both_prompts_are_equally_long(tokenizer, network):
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL)) == list(range(len(SPECIAL)))
    both = [tokenizer(text).input_ids for text in (DEFAULT_INSTRUCTION, DESCRIBE)]
    assert len(both[0]) == len(both[1]) and sum(x != y for x, y in zip(*both, strict=True)) == 1
    assert tokenizer.unk_token_id not in both[0] + both[1]
    shown = [
        tokenizer.convert_ids_to_tokens(network.embed.before),
        tokenizer.convert_ids_to_tokens(network.embed.after),
    ]
    assert shown == [START, END]


def test_a_picture_of_192_pixels_is_taken_as_it_is(tokenizer, noise_images):
    processor = make_processor(tokenizer)
    given = processor.image_processor([Image.fromarray(x) for x in noise_images], return_tensors="pt")
    assert given["image_grid_thw"].tolist() == [[1, 12, 12]] * 3
    twice = given["pixel_values"].view(3, 144, 3, 2, 256)  # color, time, place
    assert torch.equal(twice[:, :, :, 0], twice[:, :, :, 1])
    assert torch.allclose(twice[:, :, :, 0].reshape(3, 144, 768), patches(noise_images), atol=1e-6)


@settings(max_examples=40)
@given(st.integers(24, 500), st.integers(24, 500), st.sampled_from(["RGB", "L", "RGBA"]))
def test_other_sizes_and_shapes_stay_within_the_limits(tokenizer, height, width, mode):
    if max(height, width) > 4 * min(height, width):
        height = width = max(height, width)
    picture = Image.new(mode, (width, height))
    given = make_processor(tokenizer).image_processor(picture, return_tensors="pt")
    time, high, wide = given["image_grid_thw"][0].tolist()
    assert time == 1 and high % 2 == wide % 2 == 0
    rows, columns = high // 2, wide // 2
    assert 4 <= rows * columns <= N_IMAGE_TOKENS == (IMAGE_SIZE // CELL) ** 2
    # a cell of rounding either way
    assert abs(rows - columns * height / width) <= 1 + height / width
    assert rows == columns or height != width
