"""The losses against slow and obvious versions by the model's own forward pass; places of the tags."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from saber.miniature import architecture as arch
from saber.miniature import batches
from saber.miniature.batches import contrastive_batch, dense_batch, generative_batch
from saber.miniature.language import load_language
from saber.miniature.stages import TAG_LAYER, Losses
from saber.vocabulary import load_vocabulary


@pytest.fixture
def losses(network):
    return Losses(network)


@pytest.fixture(scope="module")
def generative():
    return generative_batch(3, (2, 1, 0))


@pytest.fixture(scope="module")
def contrastive():
    return contrastive_batch(4, 0.0, (2, 2, 1))


@pytest.fixture(scope="module")
def dense():
    return dense_batch(2, 0.9, 0.5, (2, 0, 0))


def text_row(network, text, target):
    """Token ids of a chat that asks to describe the text, with the answer; and where the answer starts."""
    messages = [{"role": "system", "content": arch.DESCRIBE}, {"role": "user", "content": text}]
    chat = network.tokenizer.apply_chat_template(
        messages, chat_template=arch.CHAT_TEMPLATE, add_generation_prompt=True, tokenize=False
    )
    start, answer = (network.tokenizer(t, add_special_tokens=False).input_ids for t in (chat, target))
    return [*start, *answer, arch.IM_END], len(start)


def image_row(network, processed, image, target):
    given = processed(arch.DESCRIBE, image)
    start = given["input_ids"][0].tolist()
    answer = network.tokenizer(target, add_special_tokens=False).input_ids
    return [*start, *answer, arch.IM_END], len(start), given


def own_forward(network, ids, given=None):
    """Final states and the states after the layer of the tags, of one row by the model's own forward."""
    kept = []
    # what goes into the next layer is what came out of this one: no deepstack is added this late
    after = network.model.language_model.layers[TAG_LAYER + 1]
    hook = after.register_forward_pre_hook(lambda _m, args: kept.append(args[0]))
    ids = torch.tensor([ids])
    extra = {k: given[k] for k in ("pixel_values", "image_grid_thw")} if given else {}
    try:
        states = network.model(
            input_ids=ids, mm_token_type_ids=(ids == arch.IMAGE).int(), use_cache=False, **extra
        ).last_hidden_state
    finally:
        hook.remove()
    return states[0], kept[0][0]


def answer_losses(network, ids, start, states):
    logits = states @ network.words.T
    return [-F.log_softmax(logits[k - 1], -1)[ids[k]].item() for k in range(start, len(ids))]


def test_all_losses_are_finite_and_reach_their_parameters(losses, network, dense, generative, contrastive):
    for loss, figures in (
        losses.dense(dense),
        losses.generative(generative),
        losses.contrastive(contrastive),
    ):
        assert loss.ndim == 0 and torch.isfinite(loss) and loss > 0
        assert all(np.isfinite(value) for value in figures.values())
        network.model.zero_grad()
        loss.backward()
        assert network.words.grad.abs().max() > 0
    assert all(p.grad is not None and p.grad != 0 for p in losses.parameters())
    assert {name for name, _ in losses.named_parameters()} == {"dense_scale", "tag_scale", "temperature"}
    network.model.zero_grad(set_to_none=True)


@torch.no_grad()
def test_dense_loss_by_hand(losses, network, processed, dense):
    known = load_vocabulary("known")
    groups = [[a.name for a in known.attributes], [o.name for o in known.objects]]
    groups = [network.words[network.tokenizer.convert_tokens_to_ids(names)] for names in groups]
    terms = {(level, which): [] for level in range(3) for which in (0, 1)}
    for i, image in enumerate(dense.images):
        given = processed(arch.DESCRIBE, image)
        own = network.model.get_image_features(given["pixel_values"], given["image_grid_thw"])
        for level, tokens in enumerate([own.pooler_output, *own.deepstack_features]):
            for cell, owner in enumerate(dense.patches[i]):
                if owner < 0:
                    continue
                for which, words in enumerate(groups):
                    logs = F.log_softmax(words @ tokens[0][cell] * np.exp(2.0), 0)
                    right = logs[dense.pairs[i][owner][which]]
                    terms[level, which].append(-(0.95 * right + 0.05 * logs.mean()).item())
    expected = sum(np.mean(terms[k, w]) * (1.0, 0.4, 0.4)[k] for k, w in terms)
    loss, figures = losses.dense(dense)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert set(figures) == {"attributes", "objects"}


@torch.no_grad()
def test_dense_names_covered_tokens_and_looks_at_no_other(losses, network, dense):
    words = torch.cat([network.words[ids] for ids in losses.seen])
    covered = torch.from_numpy(dense.patches >= 0)
    wanted = torch.full((*covered.shape, len(words)), -30.0)
    known = load_vocabulary("known")
    for which, start in ((0, 0), (1, len(known.attributes))):
        labels = torch.from_numpy(dense.labels(which)).clamp(min=0) + start
        wanted.scatter_(2, labels[..., None], 30.0)
    tokens = wanted @ torch.linalg.pinv(words).T  # vectors whose products with the words are as wanted
    perfect = (tokens, [tokens, tokens])
    _, figures = losses.dense(dense, perfect)
    assert figures == {"attributes": 1.0, "objects": 1.0}
    before = losses.dense(dense, perfect)[0]
    elsewhere = torch.where(covered[..., None], tokens, tokens.roll(1, 2))
    assert torch.equal(losses.dense(dense, (elsewhere, [tokens, tokens]))[0], before)
    here = torch.where(covered[..., None], tokens.roll(1, 2), tokens)
    assert losses.dense(dense, (here, [tokens, tokens]))[0] > before
    assert losses.dense(dense, (tokens, [tokens, here]))[0] > before


@torch.no_grad()
def test_writing_losses_are_those_of_the_models_own_forward(losses, network, processed, generative):
    _, figures = losses.generative(generative, tags=())
    image_terms, text_terms = [], []
    for i in range(3):
        ids, start = text_row(network, generative.texts[i], generative.text_targets[i])
        text_terms += answer_losses(network, ids, start, own_forward(network, ids)[0])
        image, target = generative.scenes.images[i], generative.image_targets[i]
        ids, start, given = image_row(network, processed, image, target)
        image_terms += answer_losses(network, ids, start, own_forward(network, ids, given)[0])
    assert figures["write text"] == pytest.approx(np.mean(text_terms), rel=1e-4)
    assert figures["write image"] == pytest.approx(np.mean(image_terms), rel=1e-4)


@torch.no_grad()
def test_tags_are_added_for_the_named_modalities_alone(losses, generative):
    found = {}
    for tags in ((), ("text",), ("image",), ("text", "image")):
        loss, figures = losses.generative(generative, tags=tags)
        found[tags] = loss.item()
        assert {name.split()[0] for name in figures if "tag" in name} == set(tags)
        if not tags:
            assert loss.item() == pytest.approx(figures["write image"] + figures["write text"], rel=1e-6)
    text, image = (found[(k,)] - found[()] for k in ("text", "image"))
    assert text > 1 and image > 1
    assert found["text", "image"] == pytest.approx(found[()] + text + image, rel=1e-5)


def test_without_tags_their_scale_gets_no_gradient(losses, network, generative):
    losses.generative(generative, tags=())[0].backward()
    assert losses.tag_scale.grad is None
    losses.generative(generative, tags=("text",))[0].backward()
    assert losses.tag_scale.grad != 0
    network.model.zero_grad(set_to_none=True)


@pytest.fixture
def tagged(losses, generative, monkeypatch):
    """Vectors and names that are tagged, by modality."""
    calls, name_pair = [], losses.name_pair

    def spy(vectors, groups, labels, scale, smoothing=0.0):
        calls.append((vectors, labels))
        assert scale is losses.tag_scale and smoothing == 0
        return name_pair(vectors, groups, labels, scale, smoothing)

    monkeypatch.setattr(losses, "name_pair", spy)
    words, found = load_language(), {}
    for modality in ("image", "text"):
        calls.clear()
        with torch.no_grad():
            losses.generative(generative, tags=(modality,))
        ((vectors, (attributes, objects)),) = calls
        found[modality] = (
            vectors,
            [
                (words.all_attributes()[a], words.all_objects()[o])
                for a, o in zip(attributes.tolist(), objects.tolist(), strict=True)
            ],
        )
    return found


def assert_same_rows(found, vectors, pairs):
    """Each expected vector is tagged once, with its pair."""
    tagged, tags = found
    vectors = torch.stack(vectors)
    assert len(tagged) == len(vectors)
    distances = torch.cdist(tagged, vectors, compute_mode="donot_use_mm_for_euclid_dist")
    near = distances.argmin(1).tolist()
    assert sorted(near) == list(range(len(vectors))) and distances.min(1).values.max() < 1e-3
    assert tags == [pairs[k] for k in near]


@torch.no_grad()
def test_text_tags_lie_on_the_later_word_of_each_pair(network, generative, tagged):
    vectors, pairs = [], []
    for text, target, stated in zip(generative.texts, generative.text_targets, generative.pairs, strict=True):
        ids, start = text_row(network, text, target)
        tokens = network.tokenizer.convert_ids_to_tokens(ids)
        states = F.rms_norm(own_forward(network, ids)[1], (192,))
        for pair in stated:
            places = [[k for k, token in enumerate(tokens[:start]) if token == word] for word in pair]
            assert [len(p) for p in places] == [1, 1]
            later = max(places[0][0], places[1][0])
            assert tokens[later] in pair
            vectors.append(states[later])
            pairs.append(pair)
    assert_same_rows(tagged["text"], vectors, pairs)


@torch.no_grad()
def test_image_tags_lie_on_the_covered_image_tokens(network, processed, generative, tagged):
    vectors, pairs, scenes = [], [], generative.scenes
    for i, target in enumerate(generative.image_targets):
        ids, _, given = image_row(network, processed, scenes.images[i], target)
        places = [k for k, token in enumerate(ids) if token == arch.IMAGE]
        assert len(places) == 36
        states = F.rms_norm(own_forward(network, ids, given)[1], (192,))
        for place, owner in zip(places, scenes.patches[i], strict=True):
            if owner >= 0:
                vectors.append(states[place])
                pairs.append(batches.names(scenes, i)[owner])
    assert_same_rows(tagged["image"], vectors, pairs)


def info_nce(scores):
    """The mean of both directions, sum by sum."""
    rows = [-np.log(np.exp(scores[i, i]) / np.exp(scores[i]).sum()) for i in range(len(scores))]
    columns = [-np.log(np.exp(scores[i, i]) / np.exp(scores[:, i]).sum()) for i in range(len(scores))]
    return (np.mean(rows) + np.mean(columns)) / 2


@torch.no_grad()
def test_contrastive_loss_by_hand(losses, network, contrastive):
    image, second = (
        network.embed_images(x).double().numpy() for x in (contrastive.images, contrastive.second)
    )
    captions, texts, left, right = (
        network.embed_texts(getattr(contrastive, name)).double().numpy()
        for name in ("captions", "texts", "left", "right")
    )
    expected = info_nce(6.0 * image @ captions.T)
    expected += 0.5 * info_nce(6.0 * image[:2] @ second.T)
    expected += 0.5 * info_nce(6.0 * np.concatenate([captions, left]) @ np.concatenate([texts, right]).T)
    loss, figures = losses.contrastive(contrastive)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    hits = (image @ captions.T).argmax(1) == np.arange(4)
    assert figures["image-text"] == pytest.approx(hits.mean())


@torch.no_grad()
def test_perfect_embeddings_have_no_contrastive_loss(losses, network, contrastive, monkeypatch):
    place = torch.eye(6)  # a direction for each of the four scenes, and for the two that have no image
    scenes = {k: place[i] for k, i in zip(range(6), [0, 1, 2, 3, 0, 1], strict=True)}
    monkeypatch.setattr(
        network, "embed_images", lambda images, frozen: torch.stack([scenes[k] for k in range(len(images))])
    )
    wanted = [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 4, 5]
    given = [*contrastive.captions, *contrastive.texts, *contrastive.left, *contrastive.right]
    monkeypatch.setattr(network, "embed_texts", lambda texts: place[wanted] if texts == given else None)
    losses.temperature.fill_(np.log(50.0))
    loss, figures = losses.contrastive(contrastive)
    assert 0 <= loss < 1e-6
    assert figures == {"image-text": 1.0, "image-image": 1.0, "text-text": 1.0}
    wanted = [1, 2, 3, 0, 0, 1, 2, 3, 4, 5, 4, 5]
    loss, figures = losses.contrastive(contrastive)
    assert loss > 50 and figures["image-text"] == 0 and figures["image-image"] == 1


def test_the_scale_starts_at_the_given_inverse_temperature(network):
    assert Losses(network, 11.0).temperature.exp().item() == pytest.approx(11)
