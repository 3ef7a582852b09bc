"""Does a text encoder attend from objects to their own attributes? (paper, appendix C.3, eq. 1, Figure 4)

The attention between an object and an attribute is measured in the direction that a causal model has, from
the later word to the earlier one; for bidirectional models the same direction is taken. The binding margin of
an object is its mean attention to its own attributes minus that to the attributes of the other objects.

    margins = binding_margins(model, ["A red cup and a blue dog"], [[("red", "cup"), ("blue", "dog")]])
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import nn

Span = tuple[int, int]  # first, and one past the last
_SIZES = {"padding", "truncation", "max_length", "return_tensors", "restore_suffix"}  # not for the template
_HOOKED = "_output_capturing_hooks_installed"  # mark of transformers on a model that returned attention


def binding_margins(
    model,
    texts: Sequence[str],
    pairs: Sequence[Sequence[tuple[str, str]]],
    prompt: str | None = None,
    batch_size: int = 32,
) -> np.ndarray:
    """Binding margin of each text at each layer (eq. 1, averaged over the objects): float64 ``(n, layers)``.

    Between -1 and 1; 0: no preference for the right attributes. The text is read as by ``model.encode``: in
    its chat template, if there is one, and words are looked for in the user's content only. Layers without
    attention weights (linear attention of hybrid decoders) are left out. In half precision the weights have
    two or three digits. During the call the model uses eager attention, which holds the weights of all layers
    at once; afterwards, also after an error, the model is as it was.

    Args:
        model: SentenceTransformer whose first module is a Transformer, with LoRA weights or without.
        texts: n texts.
        pairs: for each text its (attribute, object) words, of two objects or more. Each word occurs exactly
            once in the text, as a whole word, upper and lower case being the same; "glove" does not occur in
            "boxing glove" where that is listed too. An object with several attributes has several pairs.
        prompt: the instruction, for chat models the system message; None takes the model's default, "" none.
        batch_size: texts at once; it does not change the result.

    Raises ValueError, naming text and word, for words that are not there or not clear, for texts longer than
    the model takes, and for models without attention weights.
    """
    texts, pairs = list(texts), list(pairs)
    if not texts or len(texts) != len(pairs) or batch_size < 1:
        raise ValueError(
            f"needed are texts, a list of pairs for each, and a batch_size of 1 or more; there are "
            f"{len(texts)} texts, {len(pairs)} lists of pairs and a batch_size of {batch_size}"
        )
    transformer = model[0]
    if not getattr(getattr(transformer, "tokenizer", None), "is_fast", False):
        raise ValueError("words are found by the offsets of a fast tokenizer, which this model does not have")
    if prompt is None:
        prompt = model.prompts.get(model.default_prompt_name) or ""
    rows = []
    with _eager_attention(transformer) as network, torch.no_grad():
        numbered = zip(_names(texts), texts, pairs, strict=True)
        bindings = [_token_spans(transformer, name, text, own, prompt) for name, text, own in numbered]
        for first in range(0, len(texts), batch_size):
            batch = slice(first, first + batch_size)
            attention = _attention(transformer, network, texts[batch], prompt)
            rows += [margins_from_attention(a, *b) for a, b in zip(attention, bindings[batch], strict=True)]
    margins = np.stack(rows)
    if not np.isfinite(margins).all():
        row = int(np.argmin(np.isfinite(margins).all(axis=1)))
        raise ValueError(
            f"{_names(texts)[row]}: the attention is not finite; load the model in float32, "
            'SentenceTransformer(..., model_kwargs={"dtype": "float32"})'
        )
    return margins


def margins_from_attention(
    attention: np.ndarray, objects: Sequence[Span], attributes: Sequence[Sequence[Span]]
) -> np.ndarray:
    """Eq. 1 for one text, averaged over its objects: float64 ``(layers,)``.

    Args:
        attention: ``(layers, heads, length, length)``, row: the token that attends, column: what it sees.
        objects: token spans of the objects' words, two or more.
        attributes: for each object the token spans of its attributes' words, one or more. Spans are
            half-open and do not overlap.
    """
    weights = np.mean(attention, axis=1, dtype=np.float64)

    def connection(one: Span, other: Span) -> np.ndarray:
        earlier, later = sorted([one, other])
        seen = weights[:, slice(*later), slice(*earlier)]  # (layers, tokens of later, of earlier)
        return seen.sum(axis=2).mean(axis=1)

    margins = []
    for k, word in enumerate(objects):
        own = [connection(word, a) for a in attributes[k]]
        others = [connection(word, a) for j, its in enumerate(attributes) if j != k for a in its]
        margins.append(np.mean(own, axis=0) - np.mean(others, axis=0))
    return np.mean(margins, axis=0)


def _names(texts: list[str]) -> list[str]:
    """What an error calls each text."""
    return [f"text {i} ({text!r})" for i, text in enumerate(texts)]


def _token_spans(
    transformer, name: str, text: str, pairs: Sequence[tuple[str, str]], prompt: str
) -> tuple[list[Span], list[list[Span]]]:
    """Token spans of the objects and of the attributes of each, among the tokens of the whole input."""
    pairs = [(attribute.lower(), word.lower()) for attribute, word in pairs]
    content = text.strip()  # all that is left of it in some chat templates
    found = _find_words(name, content, [word for pair in pairs for word in pair])
    rendered, offsets = _tokenize(transformer, name, text, prompt)
    start = rendered.rfind(content)  # the last: the user's content follows the system message
    if start < 0:
        raise ValueError(f"{name}: the chat template changes the text, so that words cannot be found in it")
    spans = {}
    for word, (first, last) in found.items():
        tokens = [k for k, (a, b) in enumerate(offsets) if a < start + last and b > start + first]
        spans[word] = (tokens[0], tokens[-1] + 1)
    bindings: dict[str, list[str]] = {}
    for attribute, word in pairs:
        bindings.setdefault(word, []).append(attribute)
    listed = sorted([*bindings, *(a for its in bindings.values() for a in its)], key=spans.get)
    for one, other in pairwise(listed):
        if spans[one][1] > spans[other][0]:
            raise ValueError(
                f"{name}: {one!r} and {other!r} are the same word or share a token; list each attribute "
                "once, for one object"
            )
    if len(bindings) < 2:
        raise ValueError(f"{name}: a margin compares objects; pairs of at least two are needed")
    return [spans[word] for word in bindings], [[spans[a] for a in its] for its in bindings.values()]


def _find_words(name: str, text: str, words: Sequence[str]) -> dict[str, Span]:
    """Where in the text each word is. A hyphen joins: "red" does not occur in "red-hot"."""
    found: dict[str, Span] = {}
    for word in sorted(set(words), key=lambda w: (-len(w), w)):
        pattern = rf"(?<!\w)(?<!\w-){re.escape(word)}(?!\w)(?!-\w)"
        places = [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
        longer = [(a, b) for a, b in found.values() if b - a > len(word)]
        places = [(a, b) for a, b in places if not any(c <= a and b <= d for c, d in longer)]
        if len(places) != 1:
            raise ValueError(
                f"{name}: the word {word!r} occurs {len(places)} times as a whole word; each attribute and "
                "object must occur exactly once"
            )
        found[word] = places[0]
    return found


def _tokenize(transformer, name: str, text: str, prompt: str) -> tuple[str, list[Span]]:
    """The whole input as a string, and the place in it of each of the tokens that the model sees."""
    features = transformer.preprocess([{"text": text}], prompt=prompt or None)
    ids = features["input_ids"][0][features["attention_mask"][0].bool()].tolist()
    rendered = prompt + text
    if features["modality"] == "message":
        messages = transformer.input_formatter.batch_to_message("text", {"text": [text]})[1]["message"]
        if prompt:
            messages = transformer.input_formatter.prepend_prompt_to_messages(messages, prompt)
        options = transformer.processing_kwargs.get("chat_template", {})
        options = {key: value for key, value in options.items() if key not in _SIZES}
        rendered = transformer.processor.apply_chat_template(messages[0], tokenize=False, **options)
    for special in (True, False):  # which of both depends on the processor
        options = {"add_special_tokens": special, "truncation": False, "verbose": False}
        tokens = transformer.tokenizer(rendered, return_offsets_mapping=True, **options)
        if tokens["input_ids"] == ids:
            return rendered, tokens["offset_mapping"]
    raise ValueError(
        f"{name}: the model reads {len(ids)} tokens, but the whole text has {len(tokens['input_ids'])}. "
        f"Shorten it, or raise model.max_seq_length, now {transformer.max_seq_length}"
    )


def _attention(transformer, network: nn.Module, texts: list[str], prompt: str) -> Iterator[np.ndarray]:
    """Attention of each text, float32 ``(layers, heads, length, length)``, without padding."""
    # as dicts: a text that happens to be the path of an image file would be read as that image
    features = transformer.preprocess([{"text": text} for text in texts], prompt=prompt or None)
    known = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
    inputs = {key: features[key].to(network.device) for key in known if key in features}
    layers = getattr(network(**inputs, output_attentions=True), "attentions", None)
    if not layers:
        raise ValueError(f"{type(network).__name__} gives no attention weights with eager attention")
    for row, mask in enumerate(inputs["attention_mask"].bool()):
        yield torch.stack([layer[row][:, mask][:, :, mask] for layer in layers]).float().cpu().numpy()


@contextmanager
def _eager_attention(transformer) -> Iterator[nn.Module]:
    """The transformers model, without a wrapper of peft, that returns attention weights within the block."""
    network = transformer.model
    network = network.get_base_model() if hasattr(network, "get_base_model") else network
    implementations, unpad = _implementations(network.config), transformer.unpad_inputs
    before = [(m, m.training, set(m._forward_hooks), _HOOKED in vars(m)) for m in network.modules()]
    try:
        transformer.unpad_inputs = False  # of texts that flash attention lays end to end
        network.set_attn_implementation("eager")
        network.eval()
        yield network
    finally:
        # The hooks by which transformers collects attention would stay, and a model with them cannot be sent
        # to other processes.
        for module, training, hooks, hooked in before:
            module.training = training
            for key in set(module._forward_hooks) - hooks:
                del module._forward_hooks[key]
            if not hooked:
                vars(module).pop(_HOOKED, None)
        network.set_attn_implementation(implementations)
        transformer.unpad_inputs = unpad


def _implementations(config) -> dict:
    """Attention of a model and of its parts, as ``set_attn_implementation`` takes it."""
    parts = {key: getattr(config, key) for key in config.sub_configs}
    return {"": config._attn_implementation} | {
        key: _implementations(part) for key, part in parts.items() if part is not None
    }
