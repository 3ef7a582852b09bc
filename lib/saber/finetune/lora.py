"""LoRA finetuning of a sentence-transformers model with hinge triplets (paper, section 4, appendix B.5, D).

Everything is embedded as ``model.encode`` would: the model's own preprocessing, chat template and pooling.
"""

import math
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import islice

import pandas as pd
import torch
from torch import Tensor, nn

from saber.finetune.triplets import Example, Item, hinge_loss, triplet_accuracy
from saber.progress import progress_bar

# query, key, value and output projection by the names of Qwen-like and of BERT-like models
FAMILIES = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("query", "key", "value", "attention.output.dense"),
)


@dataclass(frozen=True)
class Settings:
    """Settings of appendix B.5; the batch size is ours, the paper names none.

    targets: endings of the names of the layers to adapt, such as ``("q_proj", "v_proj")``; None finds query,
    key, value and output projection.
    """

    rank: int = 4
    alpha: float = 4
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    margin: float = 0.05
    batch_size: int = 16  # examples; a batch holds four items of each
    seed: int = 0
    targets: tuple[str, ...] | None = None

    def __post_init__(self):
        for name in ("rank", "alpha", "learning_rate", "batch_size"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


def add_lora(model, settings: Settings) -> int:
    """Put fresh LoRA weights into a SentenceTransformer and freeze all others; returns their number.

    Updates of low rank without dropout, by default on query, key, value and output projection of every layer
    of the language model or text encoder; of hybrid decoders, of the full-attention layers (appendix D). A
    vision tower stays as it is. A fresh update is zero: embeddings do not change yet. The initial weights
    depend on the seed alone.
    Raises ValueError for a model without such layers and for one that already has LoRA weights.
    """
    from peft import LoraConfig, get_peft_model
    from peft.tuners.lora import LoraLayer

    network = _network(model)
    if any(isinstance(module, LoraLayer) for module in network.modules()):
        raise ValueError("the model already has LoRA weights; load it anew to start over")
    names = find_targets(network, settings.targets)
    model.requires_grad_(False)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        target_modules="|".join(map(re.escape, names)),  # whole names: endings may occur elsewhere
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers about a name that peft still uses
        torch.default_generator.manual_seed(settings.seed)  # peft draws on the CPU, whatever the device
        model[0].model = get_peft_model(network, config)
    model.eval()
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def find_targets(network: nn.Module, endings: Sequence[str] | None = None) -> list[str]:
    """Sorted names of the linear layers to adapt: with these endings, in numbered layers of the text part.

    None: the first of ``FAMILIES`` of which the model has all four. Where there is a ``language_model``, only
    layers inside it count; elsewhere vision and audio parts are left out. Raises ValueError for none.
    """
    linear = [n for n, m in network.named_modules() if isinstance(m, nn.Linear) and layer_of(n)]
    inside = [n for n in linear if "language_model" in n.split(".")]
    inside = inside or [n for n in linear if not re.search(r"(^|\.)(vis|image|audio)", n)]
    for family in FAMILIES if endings is None else [tuple(endings)]:
        found = {e: [n for n in inside if f".{n}".endswith(f".{e}")] for e in family}
        if found and all(found.values()):
            return sorted(set().union(*found.values()))
    wanted = " or ".join("/".join(f) for f in (FAMILIES if endings is None else [endings]))
    there = sorted({n.rpartition(".")[2] for n in inside}) or "none"
    raise ValueError(
        f"no layers to adapt in {type(network).__name__}: looked for linear layers named {wanted} in the "
        f"numbered layers of its text part. Name others by 'targets' of the settings; there are: {there}"
    )


def layer_of(name: str) -> tuple[str, int] | None:
    """Stack and number of the (outermost) layer that a module belongs to; None outside of layers.

    ``"language_model.layers.10.self_attn.q_proj"`` -> ``("language_model.layers", 10)``
    """
    match = re.match(r"((?:.*?\.)?(?:layers?|blocks?|h))\.(\d+)\.", name)
    return (match[1], int(match[2])) if match else None


def lora_layers(model) -> dict:
    """The layers with LoRA weights by name within the transformers model, in the order of their numbers.

    Raises ValueError for a model without any.
    """
    from peft import PeftModel
    from peft.tuners.lora import LoraLayer

    network = _network(model)
    network = network.get_base_model() if isinstance(network, PeftModel) else network
    found = {name: m for name, m in network.named_modules() if isinstance(m, LoraLayer)}
    if not found:
        raise ValueError("the model has no LoRA weights; call add_lora(model, settings) first")
    return dict(sorted(found.items(), key=lambda pair: (layer_of(pair[0]), pair[0])))


def embed(model, items: Sequence[Item], prompt: str) -> Tensor:
    """Embeddings ``(n, d)`` of ``model.encode``, with gradients, in one batch. An empty prompt is none."""
    # as dicts: a text that happens to be the path of an image file would be read as that image
    inputs = [{"text": item} if isinstance(item, str) else item for item in items]
    features = model.preprocess(inputs, prompt=prompt or None)
    features = {k: v.to(model.device) if isinstance(v, Tensor) else v for k, v in features.items()}
    return model(features)["sentence_embedding"][:, : model.truncate_dim]


def finetune(
    model,
    examples: Iterable[Example],
    settings: Settings,
    progress: bool = True,
    prompt: str | None = None,
) -> pd.DataFrame:
    """Train the LoRA weights for one epoch over the examples in the given order; returns one row a step.

    AdamW with a constant learning rate; the four items of an example are encoded in one batch. The model
    stays in evaluation mode, so no dropout of its own is active either: the result depends on the initial
    weights and the examples alone. prompt: the instruction, for chat models the system message; None takes
    the model's default, "" none.

    Columns: step (from 1), examples (seen, with this step), loss and triplet_accuracy (of the step's batch
    before its update), seconds (of the step). A last batch may be smaller.
    Raises ValueError when a loss or a gradient is NaN or Inf; the model keeps the weights of the step before.
    """
    layers = lora_layers(model)
    if prompt is None:
        prompt = model.prompts.get(model.default_prompt_name) or ""
    weights = [p for layer in layers.values() for p in layer.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    n_steps = math.ceil(len(examples) / settings.batch_size) if isinstance(examples, Sized) else None
    rows, seen = [], 0
    model.eval()
    with progress_bar(n_steps, "finetuning", "step", progress) as bar:
        for step, batch in enumerate(_batches(examples, settings.batch_size), start=1):
            start = time.perf_counter()
            items = [e.query for e in batch] + [e.positive for e in batch]
            items += [e.attribute_negative for e in batch] + [e.object_negative for e in batch]
            embeddings = embed(model, items, prompt).chunk(4)
            loss = hinge_loss(*embeddings, settings.margin)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.get_total_norm([p.grad for p in weights if p.grad is not None])
            if not (math.isfinite(loss.item()) and math.isfinite(norm.item())):
                raise ValueError(
                    f"step {step}: the loss is {loss.item()} and the norm of its gradient {norm.item()}. The "
                    f"model keeps the weights of step {step - 1}. Try a lower learning rate than "
                    f"{settings.learning_rate}, or the model in float32."
                )
            accuracy = triplet_accuracy(*embeddings)
            optimizer.step()
            seen += len(batch)
            rows.append((step, seen, loss.item(), accuracy, time.perf_counter() - start))
            bar.update()
    if not rows:
        raise ValueError("there are no examples to train on")
    optimizer.zero_grad()
    return pd.DataFrame(rows, columns=["step", "examples", "loss", "triplet_accuracy", "seconds"])


def _batches(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    remaining = iter(examples)
    while batch := list(islice(remaining, size)):
        yield batch


def _network(model) -> nn.Module:
    """The transformers model, or the PEFT model around it, inside a SentenceTransformer."""
    network = getattr(model[0], "model", None)
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"the first module of the model is a {type(model[0]).__name__}, without a transformers model; "
            "finetuning takes SentenceTransformer models whose first module is a Transformer"
        )
    return network
