import json
import shutil
import warnings

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from saber.embedders import CUT, UNKNOWN_WORDS, Content, ItemError, load_registry
from saber.embedders.content import TextWarning
from saber.embedders.open_clip_adapter import OpenClipEmbedder, builtin_spec, check_activation
from saber.embedders.registry import ModelEntry

TEXTS = ["A red teapot", "A blue kayak, and a wooden cube", "a green cube", "red", "An and a, blue kayak"]


def entry(folder, **more):
    return ModelEntry("tiny", "open_clip", ("text", "image"), "MIT", folder=str(folder), **more)


@pytest.fixture(scope="module")
def embedder(tiny_clip):
    return OpenClipEmbedder.from_entry(entry(tiny_clip), "cpu")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pictures é"), np.random.default_rng(0)
    paths = []
    for i in range(5):
        paths.append(folder / f"{i}.png")
        Image.fromarray(rng.integers(0, 256, (40 + i, 60, 3), dtype=np.uint8)).save(paths[-1])
    return [Content(image=path) for path in paths]


def texts(*strings):
    return [Content(text=string) for string in strings or TEXTS]


def test_shape_norm_type(embedder, pictures):
    vectors = embedder.embed([*texts(), *pictures])
    assert vectors.shape == (10, embedder.dim) == (10, 24)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.linalg.matrix_rank(vectors, tol=1e-4) == 10  # ten different items, ten different vectors


def test_equals_open_clip_called_by_hand(embedder, pictures, tiny_clip):
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{tiny_clip}")
    model.eval()
    tokens = open_clip.get_tokenizer(f"local-dir:{tiny_clip}")(TEXTS)
    images = torch.stack([preprocess(Image.open(c.image)) for c in pictures])
    with torch.no_grad():
        expected = torch.cat(
            [model.encode_text(tokens, normalize=True), model.encode_image(images, normalize=True)]
        )
    np.testing.assert_allclose(embedder.embed([*texts(), *pictures]), expected.numpy(), atol=1e-6)


def test_batch_order_and_neighbours_change_nothing(embedder, pictures):
    contents = [*texts(), *pictures]
    together = embedder.embed(contents)
    alone = np.concatenate([embedder.embed([content]) for content in contents])
    order = np.random.default_rng(0).permutation(len(contents))
    mixed = embedder.embed([contents[i] for i in order])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(mixed, together[order], atol=1e-5)
    assert embedder.embed([]).shape == (0, 24)


def test_weights_are_fp32_and_the_model_is_in_evaluation_mode(embedder):
    model = embedder._loaded[0]
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert not any(module.training for module in model.modules())


def test_long_captions_keep_their_end_token_and_are_counted(embedder):
    head = "red teapot " * 7  # 14 words, start and end token: just fits
    contents = texts(head, head + "blue", head + "kayak kayak", "red")
    with pytest.warns(TextWarning, match="tiny: 2 of 4 texts are longer"):
        vectors = embedder.embed(contents)
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-6)  # cut to the same 14 words and the end
    np.testing.assert_allclose(vectors[2], vectors[0], atol=1e-6)
    np.testing.assert_array_equal(embedder.text_flags(contents), [0, CUT, CUT, 0])


def test_unknown_words_are_counted(embedder):
    with pytest.warns(TextWarning, match="1 of 2 texts hold words"):
        embedder.embed(texts("a red teapot", "a red xylophone"))
    assert embedder.text_flags(texts("xylophone"))[0] == UNKNOWN_WORDS


def test_images_are_seen_as_a_person_sees_them(embedder, pictures, tmp_path):
    rgb = Image.open(pictures[0].image)
    rotated = rgb.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    rotated.save(tmp_path / "camera.png", exif=exif)
    rgba = rgb.convert("RGBA")
    rgba.save(tmp_path / "alpha.png")
    rotated.save(tmp_path / "rotated.png")
    same, also, other = embedder.embed(
        [Content(image=tmp_path / name) for name in ("camera.png", "alpha.png", "rotated.png")]
    )
    expected = embedder.embed(pictures[:1])[0]
    np.testing.assert_allclose(same, expected, atol=1e-6)
    np.testing.assert_allclose(also, expected, atol=1e-6)
    assert np.abs(other - expected).max() > 1e-3


def test_bad_items_are_named_by_their_place_in_the_batch(embedder, pictures, tmp_path):
    contents = [texts()[0], pictures[0], Content(image=tmp_path / "gone.png"), pictures[1]]
    with pytest.raises(ItemError, match=r"item 2 \(image .*gone\.png\)"):
        embedder.embed(contents)
    with pytest.raises(ItemError, match=r"item 1 .*a text or an image, not both"):
        embedder.embed([texts()[0], Content(text="red", image=pictures[0].image)])


def test_nan_and_zero_vectors_are_named(embedder, monkeypatch):
    model = embedder._loaded[0]
    encode = model.encode_text

    def broken(tokens):
        out = encode(tokens).clone()
        out[1], out[2] = float("nan"), 0
        return out

    monkeypatch.setattr(model, "encode_text", broken)
    with pytest.raises(ItemError) as caught:
        embedder.embed(texts())
    assert [(row, content.text) for row, content, _ in caught.value.failures] == [
        (1, TEXTS[1]),
        (2, TEXTS[2]),
    ]


def test_half_precision_stays_close(tiny_clip, embedder, pictures):
    half = OpenClipEmbedder.from_entry(entry(tiny_clip, dtype="bf16"), "cpu")
    cosines = (half.embed([*texts(), *pictures]) * embedder.embed([*texts(), *pictures])).sum(axis=1)
    assert cosines.min() > 0.99
    assert half.fingerprint != embedder.fingerprint


def test_fingerprint_sees_weights_config_and_tokenizer_only(tiny_clip, make_tiny_clip, tmp_path, embedder):
    def at(folder, device="cpu"):
        return OpenClipEmbedder.from_entry(entry(folder), device).fingerprint

    copy = tmp_path / "elsewhere"
    shutil.copytree(tiny_clip, copy)
    (copy / "README.md").write_text("words")
    assert at(copy, "auto") == embedder.fingerprint
    assert at(make_tiny_clip(tmp_path / "other weights", seed=1)) != embedder.fingerprint
    config = json.loads((copy / "open_clip_config.json").read_text())
    config["preprocess_cfg"]["interpolation"] = "bilinear"
    (copy / "open_clip_config.json").write_text(json.dumps(config))
    assert at(copy) != embedder.fingerprint
    shutil.copy(tiny_clip / "open_clip_config.json", copy)
    assert at(copy) == embedder.fingerprint
    tokenizer = (copy / "tokenizer.json").read_text().replace("teapot", "teapots")
    (copy / "tokenizer.json").write_text(tokenizer)
    assert at(copy) != embedder.fingerprint


def test_activation_is_checked(make_tiny_clip, tmp_path):
    quick = OpenClipEmbedder.from_entry(entry(make_tiny_clip(tmp_path / "quick", quick_gelu=True)), "cpu")
    quick.embed(texts())
    model = quick._loaded[0]
    assert type(model.transformer.resblocks[0].mlp.gelu).__name__ == "QuickGELU"
    with pytest.raises(ValueError, match="plain GELU but the architecture uses QuickGELU"):
        check_activation(model, False, "m")
    model.transformer.resblocks[0].mlp.gelu = torch.nn.GELU()
    with pytest.raises(ValueError, match="trained with QuickGELU"):
        check_activation(model, True, "m")


def test_folders_that_are_no_models(tiny_clip, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(tiny_clip, copy)
    (copy / "open_clip_config.json").write_text("{}")
    with pytest.raises(ValueError, match="'model_cfg' is missing"):
        OpenClipEmbedder.from_entry(entry(copy))
    (copy / "open_clip_config.json").unlink()
    with pytest.raises(ValueError, match=r"open_clip_config\.json is missing"):
        OpenClipEmbedder.from_entry(entry(copy))
    with pytest.raises(ValueError, match="take no instruction"):
        OpenClipEmbedder.from_entry(entry(tiny_clip, instruction="Represent this"))


def test_the_papers_models_get_their_own_activation_and_preprocessing():
    registry = load_registry()
    clip, perception = (builtin_spec(registry[name]) for name in ("clip-vit-b-32", "pe-core-bigg-14-448"))
    assert clip.model_cfg["quick_gelu"] is True and clip.model_cfg["embed_dim"] == 512
    assert clip.preprocess_cfg["mean"] == (0.48145466, 0.4578275, 0.40821073)
    assert clip.preprocess_cfg["std"] == (0.26862954, 0.26130258, 0.27577711)
    assert (clip.preprocess_cfg["interpolation"], clip.preprocess_cfg["resize_mode"]) == (
        "bicubic",
        "shortest",
    )
    assert not perception.model_cfg.get("quick_gelu") and perception.model_cfg["embed_dim"] == 1280
    assert perception.preprocess_cfg == {
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "interpolation": "bilinear",
        "resize_mode": "squash",
    }
    for name in ("clip-vit-b-32", "pe-core-bigg-14-448"):  # the pinned repository is open_clip's own choice
        tag = open_clip.get_pretrained_cfg(registry[name].architecture, registry[name].pretrained)
        assert tag["hf_hub"].strip("/") == registry[name].id


def test_wrong_names_and_the_wrong_activation_are_refused_before_any_download():
    def spec(architecture, pretrained):
        return builtin_spec(entry("x", architecture=architecture, pretrained=pretrained))

    with pytest.raises(ValueError, match="need an architecture with '-quickgelu', not 'ViT-B-32'"):
        spec("ViT-B-32", "openai")
    with pytest.raises(ValueError, match="no architecture 'ViT-Z'"):
        spec("ViT-Z", "openai")
    with pytest.raises(ValueError, match=r"no weights 'opennai'; valid: .*openai"):
        spec("ViT-B-32", "opennai")


def test_builtin_architecture_with_a_fetched_file(tmp_path, monkeypatch, pictures):
    """The way of CLIP and PE-Core, with a tiny architecture put among open_clip's own."""
    text = {"context_length": 12, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    vision = {"image_size": 32, "patch_size": 16, "width": 32, "layers": 1, "head_width": 16}
    config = {"embed_dim": 8, "quick_gelu": True, "vision_cfg": vision, "text_cfg": text}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "Tiny-quickgelu", config)
    tag = {"hf_hub": "o/tiny/", "quick_gelu": True, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    tag |= {"interpolation": "bilinear", "resize_mode": "squash"}
    monkeypatch.setattr(open_clip, "get_pretrained_cfg", lambda architecture, pretrained: tag)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "initialized randomly"
        model = open_clip.create_model("Tiny-quickgelu").eval()
    from safetensors.torch import save_file

    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    save_file(model.state_dict(), snapshot / "w.safetensors")
    asked = []

    def download(repository, file, revision):
        asked.append((repository, file, revision))
        return str(snapshot / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    tiny = ModelEntry(
        "t", "open_clip", ("text", "image"), "MIT", id="o/tiny", revision="a" * 40,
        files=("w.safetensors",), architecture="Tiny-quickgelu", pretrained="x",
    )  # fmt: skip
    embedder = OpenClipEmbedder.from_entry(tiny, "cpu")
    assert asked == [("o/tiny", "w.safetensors", "a" * 40)]
    image = Image.open(pictures[0].image).resize((32, 32), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy((np.asarray(image, np.float32) / 255 - 0.5) / 0.25).permute(2, 0, 1)[None]
    with torch.no_grad():
        expected = model.encode_image(pixels, normalize=True).numpy()
        long = open_clip.get_tokenizer("ViT-B-32")(["red " * 40], context_length=12)
        expected_text = model.encode_text(long, normalize=True).numpy()
    np.testing.assert_allclose(embedder.embed(pictures[:1]), expected, atol=1e-5)
    with pytest.warns(TextWarning, match="1 of 1 texts are longer"):
        vectors = embedder.embed(texts("red " * 40))
    np.testing.assert_allclose(vectors, expected_text, atol=1e-5)
