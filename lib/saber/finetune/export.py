"""A finetuned model as a plain sentence-transformers folder, which needs neither peft nor this library."""

import copy
import shutil
import tempfile
from pathlib import Path

import torch

from saber.finetune.lora import lora_layers
from saber.progress import quiet_transformers

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def save_merged(model, folder: Path, dtype: str = "float16") -> Path:
    """Write the model with its LoRA update (as scaled by ``scale_layers``) merged into the weights.

    ``SentenceTransformer(folder)`` loads it. The model in memory is left as it is: a copy is merged, which
    takes its memory a second time. Weights are summed in float32 and rounded once, to ``dtype``: float16,
    bfloat16 (rounds small updates away) or float32.
    The folder appears whole or not at all; one with an earlier model is replaced. Raises FileExistsError for
    a folder that holds anything else, ValueError for weights that are not finite in ``dtype``.
    """
    if dtype not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}; valid: {', '.join(DTYPES)}")
    lora_layers(model)
    folder = Path(folder)
    if (
        folder.exists()
        and not (folder / "modules.json").is_file()
        and (folder.is_file() or any(folder.iterdir()))
    ):
        raise FileExistsError(f"{folder} exists and is no model folder: choose another or remove it")
    merged = copy.deepcopy(model)
    for layer in lora_layers(merged).values():
        layer.get_base_layer().float()
    merged[0].model = merged[0].model.merge_and_unload()
    merged.to(DTYPES[dtype])
    bad = [name for name, weight in merged.named_parameters() if not weight.isfinite().all()]
    if bad:
        raise ValueError(f"weights with NaN or Inf in {dtype}: {', '.join(bad[:3])} ({len(bad)} in all)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new, old = beside / "new", beside / "old"
        with quiet_transformers():
            merged.save_pretrained(str(new), create_model_card=False)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder
