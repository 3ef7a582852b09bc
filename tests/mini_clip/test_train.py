"""A few steps of both stages: losses fall, the saved folder is what open_clip loads, and training repeats."""

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from saber.mini_clip.architecture import CONTEXT, IMAGE_SIZE, make_model, word_tokenizer
from saber.mini_clip.train import (
    VIEW,
    Recipe,
    Stage,
    Trainer,
    encode_text,
    to_input,
    tokenize,
    train,
)
from saber.training_scenes import make_pool
from saber.vocabulary import load_vocabulary

TINY = Recipe(
    seed=3,
    scenes_per_count=8,
    validation_per_count=4,
    object_counts=(2, 3),
    stages=(Stage("dense", 4, 4, 1e-3, aligned=0.5), Stage("contrastive", 3, 8, 1e-3)),
)


@pytest.fixture(scope="module")
def vocabulary():
    return load_vocabulary("known")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini") / "mini-clip é"
    return folder, train(folder, TINY, workers=1)


def test_the_tokenizer_knows_every_word_and_the_longest_caption_fits(vocabulary):
    from saber.captions import caption

    tokenizer = word_tokenizer(vocabulary)
    objects = sorted((o.name for o in vocabulary.objects), key=lambda name: -len(name.split()))[:10]
    text = caption([(a.name, o) for a, o in zip(vocabulary.attributes, objects, strict=False)])
    ids = tokenizer(text).input_ids
    assert tokenizer.unk_token_id not in ids and len(ids) <= CONTEXT
    every = " ".join(entry.name for entry in (*vocabulary.objects, *vocabulary.attributes))
    assert tokenizer.unk_token_id not in tokenizer(every).input_ids


def test_the_shortened_text_encoder_equals_the_models_own(vocabulary):
    torch.manual_seed(0)
    tokenizer = word_tokenizer(vocabulary)
    model = make_model(len(tokenizer)).eval()
    ids = tokenize(
        tokenizer, ["A red teapot", "A furry kite, a golden cube, and a blue ice cream cone"], CONTEXT
    )
    with torch.no_grad():
        assert torch.allclose(encode_text(model, ids), model.encode_text(ids, normalize=True), atol=1e-6)


def test_open_clip_loads_the_folder_as_it_is(trained):
    folder, _ = trained
    model, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    noise = np.random.default_rng(0).integers(0, 256, (IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
    assert torch.allclose(preprocess(Image.fromarray(noise)), to_input(noise[None])[0], atol=1e-6)
    with torch.no_grad():
        text = model.eval().encode_text(tokenizer(["A red teapot"]), normalize=True)
    assert text.shape == (1, 256) and torch.isfinite(text).all()


def test_the_same_seed_gives_the_same_weights(trained, tmp_path):
    _, digest = trained
    assert train(tmp_path / "again", TINY, workers=1) == digest


def test_a_rerun_takes_up_what_is_there(trained, capsys):
    folder, digest = trained
    assert train(folder, TINY, workers=1) == digest
    assert "taken from" in capsys.readouterr().out


def test_both_stages_learn(vocabulary, tmp_path):
    options = {"scenes_per_count": 8, "key": (0, 0), "object_counts": [2], "workers": 1}
    pool = make_pool(vocabulary, VIEW, tmp_path, **options)
    trainer = Trainer(vocabulary, TINY, pool)
    optimizer = torch.optim.AdamW([*trainer.model.parameters(), *trainer.heads.parameters()], lr=1e-3)
    for step_of in (trainer.dense_step, trainer.contrastive_step):
        losses = []
        for _ in range(12):
            loss, _ = step_of(pool[2], np.random.default_rng(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] - 0.3
