"""The paper's finetuning (section 4, appendix B.5) for sentence-transformers models, of text or multimodal.

    model = SentenceTransformer("Qwen/Qwen3-VL-Embedding-2B")
    settings = Settings()
    add_lora(model, settings)
    log = finetune(model, examples, settings)
    scale_layers(model, layer_factors(count_layers(model)))  # LiNeS
    save_merged(model, "my-finetuned-model")

Training examples and their loss: :mod:`.triplets`; LoRA and training: :mod:`.lora`; LiNeS:
:mod:`.layer_scaling`; the finished model as a folder: :mod:`.export`.
"""

from saber.finetune.export import save_merged
from saber.finetune.layer_scaling import count_layers, layer_factors, scale_layers
from saber.finetune.lora import Settings, add_lora, finetune
from saber.finetune.triplets import Example, hinge_loss, triplet_accuracy

__all__ = [
    "Example",
    "Settings",
    "add_lora",
    "count_layers",
    "finetune",
    "hinge_loss",
    "layer_factors",
    "save_merged",
    "scale_layers",
    "triplet_accuracy",
]
