"""LiNeS: weaken the finetuned update of early layers after training, to forget less.

Source: Wang et al. (ICLR 2025), layer-increasing network scaling; paper, appendix B.5 and C.2. Since a LoRA
update of a layer is one term added to its weight, scaling the term scales the difference to the base model.
"""

from collections.abc import Sequence

import numpy as np

from saber.finetune.lora import layer_of, lora_layers


def layer_factors(n_layers: int, alpha: float = 0.0, beta: float = 1.0) -> np.ndarray:
    """Factors ``(n_layers,)`` alpha + beta (l-1)/(L-1) for the layers l = 1 ... L.

    With the defaults of Wang et al. the first layer returns to the base model, the last keeps its update.
    """
    if n_layers < 2:
        raise ValueError(f"layer scaling needs at least 2 layers, got {n_layers}")
    return alpha + beta * np.arange(n_layers) / (n_layers - 1)


def count_layers(model) -> int:
    """Number of layers of the stack that has the LoRA weights, those without (hybrid decoders) included."""
    stack = _stack(list(lora_layers(model)))
    network = model[0].model.get_base_model()
    return len(network.get_submodule(stack))


def scale_layers(model, factors: Sequence[float]) -> None:
    """Set the factor of the LoRA update of every layer; ``factors[i]`` is that of layer ``i``, from 0.

    Factors are absolute: a second call replaces the first, and ones restore the update as trained. They live
    in memory only; ``save_merged`` writes a model that includes them, saving the adapter alone does not.
    Raises ValueError unless there is one finite number per layer (see ``count_layers``).
    """
    layers = lora_layers(model)
    factors = np.asarray(factors, dtype=np.float64)
    n_layers = count_layers(model)
    if factors.shape != (n_layers,) or not np.isfinite(factors).all():
        raise ValueError(f"expected {n_layers} finite factors, one per layer, got {factors}")
    if any(layer.merged for layer in layers.values()):
        raise ValueError("the LoRA weights are merged into the model; unmerge them before scaling")
    for name, layer in layers.items():
        for adapter in layer.scaling:
            layer.set_scale(adapter, float(factors[layer_of(name)[1]]))


def _stack(names: list[str]) -> str:
    """The one stack of layers that all names belong to."""
    stacks = sorted({layer_of(name)[0] for name in names})
    if len(stacks) > 1:
        raise ValueError(f"layers cannot be numbered: the LoRA weights are in several stacks, {stacks}")
    return stacks[0]
