"""Train the miniature: dense, generative and contrastive stage, each with a checkpoint that a rerun takes up.

All of it follows from the recipe, on one kind of machine to the byte. The base is made to fail and able to
be repaired, on purpose: the tags put bindings into an early layer, and in the contrastive stage most texts
have their attributes dealt at random, as noisy captions from the web might, so that the embedding ignores
bindings.
"""

import hashlib
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from saber import files
from saber.images.sprites_backend import SpritesBackend
from saber.miniature import batches
from saber.miniature.architecture import make_model, save_model, word_tokenizer
from saber.miniature.network import Network
from saber.miniature.stages import Losses
from saber.training import make_optimizer, schedule, set_learning_rate

KEEP_EVERY = 250  # steps
SOURCES = (
    "architecture.py",
    "batches.py",
    "language.py",
    "language.yaml",
    "network.py",
    "stages.py",
    "../training_scenes.py",
)


@dataclass(frozen=True)
class Stage:
    """One stage: so many batches of so many scenes at a learning rate."""

    name: str
    n_batches: int
    batch_size: int
    learning_rate: float


@dataclass(frozen=True)
class Recipe:
    """Everything the weights depend on besides the code.

    aligned: share of the dense stage with aligned scenes. tags: the modalities with tags in the generative
    stage. noise: share of texts with attributes dealt at random in the contrastive stage. frozen_layers: how
    many decoder layers that stage leaves as they are, with the word embeddings if any.
    """

    seed: int = 0
    stages: tuple[Stage, ...] = (
        Stage("dense", 5000, 10, 1.5e-3),
        Stage("generative", 700, 16, 1e-3),
        Stage("contrastive", 150, 32, 1e-3),
    )
    aligned: float = 0.45
    tags: tuple[str, ...] = ("text", "image")
    noise: float = 0.9
    frozen_layers: int = 0


CONTROLS = {
    "none": {},
    "contrastive-only": {"skip": "generative"},
    "text-tags": {"tags": ("text",)},
    "image-tags": {"tags": ("image",)},
    "no-tags": {"tags": ()},
    "clean-captions": {"noise": 0.0},
    "frozen-layers": {"frozen_layers": 3},
}


def control(recipe: Recipe, name: str) -> Recipe:
    """The recipe changed in one point, see ``CONTROLS``."""
    if name not in CONTROLS:
        raise ValueError(f"unknown control {name!r}; choose from {', '.join(CONTROLS)}")
    change = dict(CONTROLS[name])
    if skipped := change.pop("skip", None):
        change["stages"] = tuple(s for s in recipe.stages if s.name != skipped)
    return replace(recipe, **change)


class Trainer:
    """Model, losses and the stages that change them."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        tokenizer = word_tokenizer()
        self.network = Network(make_model(tokenizer, recipe.seed), tokenizer)
        self.losses = Losses(self.network)

    def state(self) -> dict:
        """What a checkpoint holds."""
        return {"model": self.network.model.state_dict(), "losses": self.losses.state_dict()}

    def load(self, state: dict) -> None:
        """Take up a checkpoint."""
        self.network.model.load_state_dict(state["model"])
        self.losses.load_state_dict(state["losses"])

    def plan(self, stage: Stage):
        """The function that makes a batch, its arguments for every batch, and the loss, of one stage."""
        recipe, size = self.recipe, stage.batch_size
        number = ("dense", "generative", "contrastive").index(stage.name)
        keys = [(recipe.seed, number, i) for i in range(stage.n_batches)]
        if stage.name == "dense":
            return (
                batches.dense_batch,
                [(size, i / stage.n_batches, recipe.aligned, key) for i, key in enumerate(keys)],
                self.losses.dense,
            )
        if stage.name == "generative":
            return (
                batches.generative_batch,
                [(size, key) for key in keys],
                partial(self.losses.generative, tags=recipe.tags),
            )
        return (
            batches.contrastive_batch,
            [(size, recipe.noise, key) for key in keys],
            self.losses.contrastive,
        )

    def trained(self, stage: Stage) -> list[torch.nn.Parameter]:
        """The parameters that a stage changes."""
        model = self.network.model
        if stage.name == "dense":
            return [*model.visual.parameters(), self.network.words, self.losses.dense_scale]
        language, visual = model.language_model, model.visual
        if stage.name == "generative":  # trained further, the tower forgets what it can name
            mergers = [*visual.merger.parameters(), *visual.deepstack_merger_list.parameters()]
            return [*language.parameters(), *mergers, self.losses.tag_scale]
        if not self.recipe.frozen_layers:
            return [*language.parameters(), self.losses.temperature]
        upper = language.layers[self.recipe.frozen_layers :]
        return [*upper.parameters(), *language.norm.parameters(), self.losses.temperature]

    def only(self, stage: Stage) -> list[torch.nn.Parameter]:
        """The parameters that a stage changes, all others frozen."""
        self.network.model.requires_grad_(False)
        self.losses.requires_grad_(False)
        parameters = self.trained(stage)
        for parameter in parameters:
            parameter.requires_grad_(True)
        return parameters

    def run(self, stage: Stage, workers: int, part: Path) -> None:
        """Train one stage, printing a line about every half minute.

        Every ``KEEP_EVERY`` steps its state goes to the file ``part``, from which a rerun goes on.
        """
        make, arguments, loss_of = self.plan(stage)
        parameters = self.only(stage)
        optimizer = make_optimizer(parameters)
        first = 0
        if part.exists():
            kept = torch.load(part, weights_only=True)
            self.load(kept)
            optimizer.load_state_dict(kept["optimizer"])
            first = kept["step"]
            print(f"{stage.name}: goes on after step {first}", flush=True)
        started = last = time.monotonic()
        seen: list[dict] = []
        for step, batch in enumerate(batches.ahead(make, arguments[first:], workers), start=first):
            set_learning_rate(optimizer, stage.learning_rate * schedule(step, stage.n_batches))
            loss, figures = loss_of(batch)
            if not math.isfinite(loss.item()):
                raise FloatingPointError(
                    f"the loss of stage {stage.name} is {loss.item()} at step {step + 1}"
                )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            seen.append({"loss": loss.item(), **figures})
            if time.monotonic() - last > 30 or step + 1 == stage.n_batches:
                last = time.monotonic()
                shown = " ".join(f"{k} {np.mean([s[k] for s in seen[-100:]]):.3f}" for k in seen[-1])
                rate = (step + 1 - first) * stage.batch_size / (last - started)
                print(f"{stage.name} {step + 1}/{stage.n_batches} {rate:.0f} scenes/s {shown}", flush=True)
            if (step + 1) % KEEP_EVERY == 0:
                state = {**self.state(), "optimizer": optimizer.state_dict(), "step": step + 1}
                files.write_with(part, partial(torch.save, state))


def train(folder: Path, recipe: Recipe, workers: int = 1) -> str:
    """Train all stages and write the model folder; returns the SHA-256 of its weights.

    Checkpoints lie in ``<folder>-work``; a rerun with the same recipe takes them up and ends with the same
    weights.
    """
    work = folder.with_name(folder.name + "-work")
    trainer = Trainer(recipe)
    for number, stage in enumerate(recipe.stages):
        saved = work / f"{stage.name}-{_past(recipe, number)}.pt"
        if saved.exists():
            trainer.load(torch.load(saved, weights_only=True))
            print(f"{stage.name}: taken from {saved.name}", flush=True)
            continue
        part = saved.with_suffix(".part.pt")
        trainer.run(stage, workers, part)
        files.write_with(saved, partial(torch.save, trainer.state()))
        part.unlink(missing_ok=True)
    return save_model(trainer.network.model.eval(), trainer.network.tokenizer, folder)


def _past(recipe: Recipe, number: int) -> str:
    """A digest of what leads to the end of a stage: the recipe up to it, the code and the renderer."""
    stages = recipe.stages[: number + 1]
    names = {stage.name for stage in stages}
    neutral = Recipe()
    past = replace(
        recipe,
        stages=stages,
        tags=recipe.tags if "generative" in names else neutral.tags,
        noise=recipe.noise if "contrastive" in names else neutral.noise,
        frozen_layers=recipe.frozen_layers if "contrastive" in names else neutral.frozen_layers,
    )
    code = [files.file_digest(Path(__file__).parent / name) for name in SOURCES]
    return hashlib.sha256(repr((past, code, SpritesBackend().fingerprint)).encode()).hexdigest()[:12]
