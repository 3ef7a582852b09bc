"""Binding margins against explicit loops, on a tiny model of the real Qwen3-VL classes and on MiniLM."""

import copy
import pickle

import numpy as np
import pytest
import torch

from saber.binding_margin import binding_margins, margins_from_attention

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DEFAULT = "Embed: A red cup and a blue dog."  # holds a whole text, where its words must not be looked for
N_LAYERS, N_HEADS = 3, 4
TEXTS = [
    "A red cup and a blue dog",
    "The dog is blue, and the cup next to the old rusty Boxing Glove is red.",
    "red: one cup; a torn glove and an old boxing glove",
    " Blue dog, red cup, rusty café\n",
]
PAIRS = [
    [("red", "cup"), ("blue", "dog")],
    [("blue", "dog"), ("red", "cup"), ("rusty", "boxing glove"), ("old", "boxing glove")],
    [("red", "cup"), ("torn", "glove"), ("old", "boxing glove")],
    [("rusty", "café"), ("blue", "dog"), ("red", "cup")],
]


@pytest.fixture(scope="module")
def qwen_folder(tmp_path_factory, tiny_qwen_maker):
    """Byte-level tokens, with merges so that " red" is one token and other words are two or more."""
    merges = (("Ġ", "r"), ("e", "d"), ("Ġr", "ed"), ("u", "p"), ("d", "o"), ("Ġ", "b"), ("Ġb", "l"))
    return tiny_qwen_maker(tmp_path_factory.mktemp("qwen"), N_LAYERS, merges, spread=0.3, default=DEFAULT)


@pytest.fixture
def qwen(qwen_folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(qwen_folder), device="cpu")


@pytest.fixture(scope="module")
def minilm(minilm_folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm_folder), device="cpu")


def explicit_margin(attention, spans, pairs):
    """Eq. 1 word by word, from weights [layer][head][from][to] and lists of tokens for each word."""
    objects = sorted({o for _, o in pairs})
    result = []
    for heads in attention:

        def e(u, v, heads=heads):
            later, earlier = (spans[u], spans[v]) if spans[u][0] > spans[v][0] else (spans[v], spans[u])
            total = 0.0
            for head in heads:
                for i in later:
                    for j in earlier:
                        total += float(head[i][j])
            return total / len(heads) / len(later)

        margin = 0.0
        for o in objects:
            own = [e(o, a) for a, its in pairs if its == o]
            others = [e(o, a) for a, its in pairs if its != o]
            margin += (sum(own) / len(own) - sum(others) / len(others)) / len(objects)
        result.append(margin)
    return result


def explicit_qwen(model, text, pairs, prompt):
    """Rendered by hand, one text, places of the tokens by adding up the bytes of each."""
    system = f"<|im_start|>system\n{prompt}<|im_end|>\n" if prompt else ""
    before = f"{system}<|im_start|>user\n"
    ids = model.tokenizer(f"{before}{text}<|im_end|>\n<|im_start|>assistant\n")["input_ids"]
    ends = np.cumsum([len(token) for token in model.tokenizer.convert_ids_to_tokens(ids)])  # a letter a byte
    starts = np.concatenate([[0], ends[:-1]])
    spans = {}
    for word in {w for pair in pairs for w in pair}:
        lowered = text.lower().replace("boxing glove", "boxing glove" if word == "boxing glove" else "?" * 12)
        first = len(before.encode()) + len(lowered[: lowered.index(word)].encode())
        last = first + len(word.encode())
        spans[word] = [k for k in range(len(ids)) if starts[k] < last and ends[k] > first]
    network = copy.deepcopy(model[0].model)
    network.set_attn_implementation("eager")
    with torch.no_grad():
        attention = network(input_ids=torch.tensor([ids]), output_attentions=True).attentions
    return explicit_margin([layer[0] for layer in attention], spans, pairs), spans


def test_a_margin_by_hand():
    """Two heads, one layer; the first object stands after its attribute, the second before it."""
    attention = np.zeros((2, 1, 6, 6))
    a1, o1, o2, a2 = (0, 2), (2, 3), (3, 5), (5, 6)
    attention[0, 0, 2, :2] = 0.5, 0.25  # o1 to a1: 0.75
    attention[0, 0, 3, :2] = 0.125, 0.125  # o2 to a1, first token: 0.25
    attention[0, 0, 4, 1] = 0.5  # and second: 0.5, the mean is 0.375
    attention[0, 0, 5, 2:5] = 0.125, 0.25, 0.5  # a2 to o1: 0.125, and to o2: 0.75
    attention[0, 0, 2, 5] = attention[0, 0, 0, 3] = 9  # earlier to later: not counted
    attention[1, 0] = np.eye(6)  # of another layer
    by_hand = ((0.75 - 0.125) + (0.75 - 0.375)) / 2
    assert margins_from_attention(attention, [o1, o2], [[a1], [a2]]).tolist() == [by_hand, 0]
    heads = np.concatenate([attention, np.zeros((2, 3, 6, 6))], axis=1)  # three more that see nothing here
    assert margins_from_attention(heads, [o1, o2], [[a1], [a2]]).tolist() == [by_hand / 4, 0]


def test_several_attributes_of_an_object_are_averaged():
    attention = np.zeros((1, 1, 5, 5))
    attention[0, 0, 2, :2] = 0.5, 0.25  # o1 to its two attributes
    attention[0, 0, 4, :4] = 0.125, 0.0, 0.0, 0.5  # o2 to those, and to its own
    attention[0, 0, 3, 2] = 0.25  # the attribute of o2 to o1
    margin = ((0.375 - 0.25) + (0.5 - 0.0625)) / 2
    own = [[(0, 1), (1, 2)], [(3, 4)]]
    assert margins_from_attention(attention, [(2, 3), (4, 5)], own).tolist() == [margin]


def test_random_attention_against_loops():
    rng = np.random.default_rng(0)
    for _ in range(20):
        ends = np.cumsum(rng.integers(1, 4, size=7))
        spans = [(int(a), int(b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        rng.shuffle(spans)
        attention = rng.dirichlet(np.ones(ends[-1]), size=(2, 3, ends[-1])).astype(np.float32)
        words = dict(zip("opqabcd", spans, strict=True))
        pairs = [("a", "o"), ("b", "p"), ("c", "q"), ("d", "p")]
        ours = margins_from_attention(
            attention, [words[o] for o in "opq"], [[words[a] for a in its] for its in ("a", "bd", "c")]
        )
        tokens = {word: list(range(*span)) for word, span in words.items()}
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, explicit_margin(attention, tokens, pairs), atol=1e-12)


@pytest.mark.parametrize("prompt", [None, "", "Find it: red cup!"])
def test_qwen_against_loops(qwen, prompt):
    margins = binding_margins(qwen, TEXTS, PAIRS, prompt=prompt)
    assert margins.shape == (len(TEXTS), N_LAYERS) and margins.dtype == np.float64
    sizes = set()
    for row, text, pairs in zip(margins, TEXTS, PAIRS, strict=True):
        expected, spans = explicit_qwen(qwen, text, pairs, DEFAULT if prompt is None else prompt)
        np.testing.assert_allclose(row, expected, atol=2e-6)
        sizes |= {len(span) for span in spans.values()}
    assert {1, 2, 3} < sizes  # words of one token and of several
    assert np.abs(margins).min() > 1e-4


def test_minilm_against_loops(minilm):
    texts = ["A red teapot and a zigzag snowboard", "The teapot is camouflage but snowboards are red"]
    pairs = [
        [("red", "teapot"), ("zigzag", "snowboard")],
        [("camouflage", "teapot"), ("red", "snowboards")],
    ]
    network = copy.deepcopy(minilm[0].model)
    network.set_attn_implementation("eager")
    for prompt in (None, "query: "):
        margins = binding_margins(minilm, texts, pairs, prompt=prompt)
        for row, text, own in zip(margins, texts, pairs, strict=True):
            encoded = minilm.tokenizer((prompt or "") + text, return_tensors="pt")
            with torch.no_grad():
                attention = network(**encoded, output_attentions=True).attentions
            pieces = [*enumerate(minilm.tokenizer.convert_ids_to_tokens(encoded["input_ids"][0]))]
            groups = []  # pieces put together to words
            for k, piece in pieces:
                if piece.startswith("##"):
                    groups[-1] = (groups[-1][0] + piece[2:], [*groups[-1][1], k])
                else:
                    groups.append((piece, [k]))
            spans = dict(groups)
            assert max(len(spans[w]) for pair in own for w in pair) > 1
            expected = explicit_margin([layer[0] for layer in attention], spans, own)
            np.testing.assert_allclose(row, expected, atol=2e-6)


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_and_padding_change_nothing(qwen, side):
    alone = binding_margins(qwen, TEXTS, PAIRS, batch_size=1)
    qwen.tokenizer.padding_side = side
    for size in (2, 3, 32):
        np.testing.assert_allclose(binding_margins(qwen, TEXTS, PAIRS, batch_size=size), alone, atol=2e-6)


def test_order_and_case_of_the_words_do_not_count(qwen):
    turned = [[(a.upper(), o.title()) for a, o in reversed(pairs)] for pairs in PAIRS]
    np.testing.assert_allclose(
        binding_margins(qwen, TEXTS, turned), binding_margins(qwen, TEXTS, PAIRS), atol=1e-12
    )


def test_exchanged_attributes_of_two_pairs_turn_the_sign(qwen):
    margins = binding_margins(
        qwen, TEXTS[:1] * 2, [[("red", "cup"), ("blue", "dog")], [("blue", "cup"), ("red", "dog")]]
    )
    np.testing.assert_allclose(margins[0], -margins[1], atol=1e-12)


def test_lora_counts(qwen):
    from saber.finetune import Settings, add_lora

    plain = binding_margins(qwen, TEXTS, PAIRS)
    add_lora(qwen, Settings())
    np.testing.assert_allclose(binding_margins(qwen, TEXTS, PAIRS), plain, atol=2e-6)  # still zero
    generator = torch.Generator().manual_seed(0)
    for name, weight in qwen.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=generator)
    adapted = binding_margins(qwen, TEXTS, PAIRS)
    assert np.abs(adapted - plain).max() > 1e-3
    qwen[0].model = qwen[0].model.merge_and_unload()
    np.testing.assert_allclose(binding_margins(qwen, TEXTS, PAIRS), adapted, atol=1e-5)


def state(model):
    """What a call may not change: attention of all parts, training modes, hooks."""
    network = model[0].model
    parts = [network.config, network.config.text_config, network.config.vision_config]
    modules = [(module.training, len(module._forward_hooks)) for module in network.modules()]
    return [part._attn_implementation for part in parts], modules, model[0].unpad_inputs


@pytest.mark.parametrize("implementation", ["sdpa", "eager", {"": "sdpa", "text_config": "eager"}])
def test_the_model_stays_as_it_was(qwen, implementation, monkeypatch):
    network = qwen[0].model
    network.set_attn_implementation(implementation)
    network.train()
    network.language_model.layers[1].eval()
    qwen[0].unpad_inputs = None
    before = state(qwen)
    seen = []
    forward = network.language_model.forward
    monkeypatch.setattr(
        network.language_model,
        "forward",
        lambda *args, **kwargs: seen.append(state(qwen)[0]) or forward(*args, **kwargs),
    )
    binding_margins(qwen, TEXTS, PAIRS)
    assert seen == [["eager"] * 3]
    assert state(qwen) == before

    def fail(*args, **kwargs):
        seen.append("failed")
        raise RuntimeError("out of memory")

    monkeypatch.setattr(network.language_model, "forward", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        binding_margins(qwen, TEXTS, PAIRS)
    assert seen[-1] == "failed" and state(qwen) == before
    monkeypatch.undo()
    assert pickle.loads(pickle.dumps(qwen)).encode(TEXTS).shape == (len(TEXTS), 32)
    with pytest.raises(ValueError, match="'cow'"):
        binding_margins(qwen, TEXTS[:1], [[("red", "cup"), ("blue", "cow")]])
    assert state(qwen) == before


@pytest.mark.parametrize(
    ("text", "pairs", "message"),
    [
        ("A red cup and a blue dog", [("red", "cup"), ("blue", "cow")], "'cow' occurs 0 times"),
        ("A red cup and a blue Cup", [("red", "cup"), ("blue", "dog")], "'cup' occurs 2 times"),
        ("A red cup and a blue bulldog", [("red", "cup"), ("blue", "dog")], "'dog' occurs 0 times"),
        ("A red-hot cup and a blue dog", [("red", "cup"), ("blue", "dog")], "'red' occurs 0 times"),
        ("A boxing glove, a glove: red", [("red", "glove"), ("a", "cup")], "'glove' occurs 2 times"),
        ("A red cup and a blue dog", [("red", "cup")], "at least two"),
        ("A red old cup and a blue dog", [("red", "cup"), ("old", "CUP")], "at least two"),
        ("A red cup and a blue dog", [], "at least two"),
        ("A red cup and dog", [("red", "cup"), ("red", "dog")], "'red' and 'red' are the same word"),
        ("A red cup and dog", [("red", "cup"), ("cup", "dog")], "'cup' and 'cup' are the same word"),
    ],
)
def test_unclear_words_are_named_with_their_text(qwen, text, pairs, message):
    with pytest.raises(ValueError, match=rf"text 1 \('{text}'\): .*{message}"):
        binding_margins(qwen, [TEXTS[0], text], [PAIRS[0], pairs])


def test_words_of_one_token_are_refused(qwen_folder, qwen):
    qwen.tokenizer.add_tokens("ed ro")
    qwen[0].model.resize_token_embeddings(len(qwen.tokenizer))
    with pytest.raises(ValueError, match="'red' and 'rose' are the same word or share a token"):
        binding_margins(qwen, ["a red rose or a blue dog"], [[("red", "rose"), ("blue", "dog")]])


def test_a_text_that_is_cut_is_refused(qwen):
    short, long = (
        int(qwen[0].preprocess([{"text": text}], prompt=DEFAULT)["attention_mask"].sum())
        for text in TEXTS[:2]
    )
    qwen.max_seq_length = short  # the first just fits
    message = rf"text 1 .* reads {short} tokens.* has {long}.*max_seq_length, now {short}"
    with pytest.raises(ValueError, match=message):
        binding_margins(qwen, TEXTS[:2], PAIRS[:2])


def test_a_template_that_changes_the_text_is_refused(qwen):
    qwen[0].processor.chat_template = TEMPLATE.replace("c['text']", "c['text'] | upper")
    with pytest.raises(ValueError, match=r"text 0 .*template changes the text"):
        binding_margins(qwen, TEXTS, PAIRS)


def test_a_template_may_strip_the_text(qwen):
    expected = binding_margins(qwen, [text.strip() for text in TEXTS], PAIRS)
    qwen[0].processor.chat_template = TEMPLATE.replace("c['text']", "c['text'] | trim")
    np.testing.assert_allclose(binding_margins(qwen, TEXTS, PAIRS), expected, atol=1e-12)


def test_templates_whose_messages_are_plain_strings(qwen):
    expected = binding_margins(qwen, TEXTS, PAIRS)
    qwen[0].input_formatter.message_format = "flat"
    qwen[0].processor.chat_template = TEMPLATE.replace("c['text']", "fail")
    np.testing.assert_allclose(binding_margins(qwen, TEXTS, PAIRS), expected, atol=1e-12)


def test_other_wrong_input_is_refused(qwen, monkeypatch):
    for texts, pairs, size in (([], [], 1), (TEXTS, PAIRS[:2], 1), (TEXTS, PAIRS, 0)):
        with pytest.raises(ValueError, match=f"there are {len(texts)} texts, {len(pairs)} lists"):
            binding_margins(qwen, texts, pairs, batch_size=size)
    with monkeypatch.context() as patch:  # as where transformers cannot change the attention of a model
        patch.setattr(qwen[0].model, "set_attn_implementation", lambda implementation: None)
        with pytest.raises(ValueError, match="Qwen3VLModel gives no attention weights"):
            binding_margins(qwen, TEXTS, PAIRS)
    qwen[0].model.language_model.layers[0].self_attn.q_proj.weight.data.fill_(torch.inf)
    with pytest.raises(ValueError, match=r"text 0 .*not finite; load the model in float32"):
        binding_margins(qwen, TEXTS, PAIRS)


def test_a_model_without_a_fast_tokenizer_is_refused():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    with pytest.raises(ValueError, match="fast tokenizer"):
        binding_margins(SentenceTransformer(modules=[BoW(["red"])], device="cpu"), TEXTS, PAIRS)
