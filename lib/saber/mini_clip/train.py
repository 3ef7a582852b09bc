"""Two stages: patches learn to name what covers them, then image and caption are contrasted (CLIP).

Contrastive training alone stalls on small budgets: colors are learned, objects are not. The dense first stage
gives every patch a label and needs some minutes; its two linear heads are dropped afterwards. In the second
stage captions and images of random scenes are matched within the batch (InfoNCE), which needs the words and
not who wears what: binding is neither taught nor hindered.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from open_clip import ClipLoss

from saber import files
from saber.captions import caption
from saber.images.sprites_backend import SpritesBackend
from saber.mini_clip.architecture import IMAGE_SIZE, PATCH, make_model, save_model, word_tokenizer
from saber.training import make_optimizer, schedule, set_learning_rate
from saber.training_scenes import Format, Scenes, aligned_batch, make_pool
from saber.vocabulary import Vocabulary, load_vocabulary

VIEW = Format(IMAGE_SIZE, PATCH)
GRID, ALIGNED_OBJECTS = 4, 12  # of the first, aligned scenes; a cell is 2 x 2 patches


@dataclass(frozen=True)
class Stage:
    """One stage. For the share ``aligned`` of its batches the scenes are aligned ones with growing jitter."""

    name: str
    n_batches: int
    batch_size: int
    learning_rate: float
    aligned: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """Everything the weights depend on besides the code."""

    seed: int = 0
    scenes_per_count: int = 2000
    validation_per_count: int = 50
    object_counts: tuple[int, ...] = tuple(range(1, 11))
    stages: tuple[Stage, ...] = (
        Stage("dense", 3000, 16, 1.5e-3, aligned=0.5),
        Stage("contrastive", 600, 64, 6e-4),
    )


def to_input(images: np.ndarray) -> torch.Tensor:
    """``(n, 128, 128, 3)`` uint8 -> ``(n, 3, 128, 128)`` float32 as the saved preprocessing does it."""
    return (
        torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
        .float()
        .div_(127.5)
        .sub_(1)
        .mul_(2)
    )


def encode_text(model, ids: torch.Tensor) -> torch.Tensor:
    """``model.encode_text`` on the batch cut to its longest caption: causal, so the rest changes nothing."""
    length = int((ids != 0).sum(1).max())
    ids = ids[:, :length]
    x = model.token_embedding(ids) + model.positional_embedding[:length]
    x = model.ln_final(model.transformer(x, attn_mask=model.attn_mask[:length, :length]))
    ends = (ids == model.text_eos_id).int().argmax(1)
    return F.normalize(x[torch.arange(len(x)), ends] @ model.text_projection, dim=-1)


def tokenize(tokenizer, texts: list[str], length: int) -> torch.Tensor:
    """Token ids ``(n, length)``, padded."""
    encoded = tokenizer(texts, padding="max_length", max_length=length, truncation=True, return_tensors="pt")
    return encoded.input_ids


class Trainer:
    """Model, tokenizer and the temporary dense heads."""

    def __init__(self, vocabulary: Vocabulary, recipe: Recipe, pool: dict[int, Scenes]):
        torch.manual_seed(recipe.seed)
        self.vocabulary, self.recipe, self.pool = vocabulary, recipe, pool
        self.tokenizer = word_tokenizer(vocabulary)
        self.model = make_model(len(self.tokenizer))
        width = self.model.visual.conv1.out_channels
        self.heads = torch.nn.ModuleList(
            [
                torch.nn.Linear(width, len(vocabulary.attributes)),
                torch.nn.Linear(width, len(vocabulary.objects)),
            ]
        )
        self.clip_loss = ClipLoss()

    def batches(self, stage: Stage, number: int) -> Iterator[Scenes]:
        """The stage's batches, each of one object count, so that the count gives nothing away."""
        counts = sorted(self.pool)
        for i in range(stage.n_batches):
            rng = np.random.default_rng((self.recipe.seed, number, i))
            progress = i / stage.n_batches / stage.aligned if stage.aligned else 1.0
            if progress < 1:
                key = (self.recipe.seed, number, i)
                jitter = min(0.5, 0.05 + 0.6 * progress)
                yield aligned_batch(
                    self.vocabulary, VIEW, stage.batch_size, ALIGNED_OBJECTS, GRID, jitter, key
                )
            else:
                scenes = self.pool[counts[i % len(counts)]]
                yield scenes.take(np.sort(rng.choice(len(scenes.images), stage.batch_size, replace=False)))

    def dense_step(self, batch: Scenes, rng: np.random.Generator) -> tuple[torch.Tensor, dict]:
        """Cross-entropy of each covered patch's attribute and object."""
        self.model.visual.output_tokens = True
        _, tokens = self.model.visual(to_input(batch.images))  # (b, 64, width)
        self.model.visual.output_tokens = False
        loss, logs = 0.0, {}
        for which, name in enumerate(("attributes", "objects")):
            labels = torch.from_numpy(batch.labels(which)).reshape(-1)
            logits = self.heads[which](tokens.reshape(-1, tokens.shape[-1]))
            loss = loss + F.cross_entropy(logits, labels, ignore_index=-1, label_smoothing=0.05)
            logs[f"patch {name}"] = (logits.argmax(1) == labels)[labels >= 0].float().mean().item()
        return loss, logs

    def tokens(self, batch: Scenes, rng: np.random.Generator) -> torch.Tensor:
        """Token ids of the scenes' captions, the pairs in random order: ``(n, 56)``."""
        texts = []
        for pairs in batch.pairs:
            names = [(self.vocabulary.attributes[a].name, self.vocabulary.objects[o].name) for a, o in pairs]
            texts.append(caption([names[i] for i in rng.permutation(len(names))]))
        return tokenize(self.tokenizer, texts, self.model.context_length)

    def contrastive_step(self, batch: Scenes, rng: np.random.Generator) -> tuple[torch.Tensor, dict]:
        """InfoNCE over the batch, both directions."""
        image = F.normalize(self.model.encode_image(to_input(batch.images)), dim=-1)
        text = encode_text(self.model, self.tokens(batch, rng))
        scale = self.model.logit_scale.exp().clamp(max=100)
        hits = (image @ text.T).argmax(1) == torch.arange(len(image))
        return self.clip_loss(image, text, scale), {"in-batch accuracy": hits.float().mean().item()}

    def run(self, stage: Stage, number: int) -> None:
        """Train one stage, printing a line about every half minute."""
        step_of = {"dense": self.dense_step, "contrastive": self.contrastive_step}[stage.name]
        parameters = [*self.model.parameters(), *self.heads.parameters()]
        optimizer = make_optimizer(parameters)
        started = last = time.monotonic()
        seen: list[dict] = []
        for step, batch in enumerate(self.batches(stage, number)):
            set_learning_rate(optimizer, stage.learning_rate * schedule(step, stage.n_batches))
            loss, logs = step_of(batch, np.random.default_rng((self.recipe.seed, number, step, 1)))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            seen.append({"loss": loss.item(), **logs})
            if time.monotonic() - last > 30 or step + 1 == stage.n_batches:
                last = time.monotonic()
                figures = " ".join(f"{k} {np.mean([s[k] for s in seen[-100:]]):.3f}" for k in seen[-1])
                rate = (step + 1) * stage.batch_size / (last - started)
                print(f"{stage.name} {step + 1}/{stage.n_batches} {rate:.0f} images/s {figures}", flush=True)

    @torch.no_grad()
    def recall_at_1(self, pool: dict[int, Scenes]) -> dict[str, float]:
        """R@1 in percent among all scenes of ``pool`` taken together."""
        self.model.eval()
        rng = np.random.default_rng((self.recipe.seed, 98))
        images = [F.normalize(self.model.encode_image(to_input(s.images)), dim=-1) for s in pool.values()]
        texts = [encode_text(self.model, self.tokens(s, rng)) for s in pool.values()]
        scores = torch.cat(texts) @ torch.cat(images).T
        target = torch.arange(len(scores))
        self.model.train()
        return {
            "T->I R@1": 100 * (scores.argmax(1) == target).float().mean().item(),
            "I->T R@1": 100 * (scores.argmax(0) == target).float().mean().item(),
        }


def train(folder: Path, recipe: Recipe, workers: int = 2) -> str:
    """Train all stages and write the model folder; returns the SHA-256 of its weights.

    Rendered scenes and a checkpoint after each stage lie in ``<folder>-work`` and are taken up by a rerun.
    """
    work = folder.with_name(folder.name + "-work")
    vocabulary = load_vocabulary("known")
    common = {"object_counts": recipe.object_counts, "workers": workers}
    pool = make_pool(
        vocabulary, VIEW, work, scenes_per_count=recipe.scenes_per_count, key=(recipe.seed, 0), **common
    )
    validation = make_pool(
        vocabulary,
        VIEW,
        work,
        scenes_per_count=recipe.validation_per_count,
        key=(recipe.seed, 99),
        allow_held_out=True,
        **common,
    )
    trainer = Trainer(vocabulary, recipe, pool)
    for number, stage in enumerate(recipe.stages):
        # everything that led here: the recipe up to this stage and the scenes
        past = repr((replace(recipe, stages=recipe.stages[: number + 1]), SpritesBackend().fingerprint))
        saved = work / f"{stage.name}-{hashlib.sha256(past.encode()).hexdigest()[:12]}.pt"
        if saved.exists():
            trainer.model.load_state_dict(torch.load(saved, weights_only=True))
            print(f"{stage.name}: taken from {saved.name}", flush=True)
            continue
        trainer.run(stage, number)
        files.write_with(saved, partial(torch.save, trainer.model.state_dict()))
    figures = trainer.recall_at_1(validation)
    n_scenes = recipe.validation_per_count * len(recipe.object_counts)
    shown = " ".join(f"{k} {v:.1f} %" for k, v in figures.items())
    print(f"validation, {n_scenes} random scenes: {shown}", flush=True)
    return save_model(trainer.model.eval(), trainer.tokenizer, folder)
