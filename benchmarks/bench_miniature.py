"""Training throughput of the miniature, by stage, and its fast vision pass beside the library's own.

Run: ``python benchmarks/bench_miniature.py [--steps 5]``. One core. Making batches is timed apart: in a
training run another process does it meanwhile.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: every figure below is for one core
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import numpy as np
import torch

from saber.miniature import architecture as arch
from saber.miniature.network import patches
from saber.miniature.train import Recipe, Trainer


def seconds(function) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def stage_throughput(trainer: Trainer, stage, steps: int) -> None:
    """Scenes per second of making batches and of forward and backward passes, after one of each."""
    make, arguments, loss_of = trainer.plan(stage)
    parameters = trainer.only(stage)
    spread = [arguments[i * len(arguments) // (steps + 1)] for i in range(steps + 1)]
    made = [(time.process_time(), make(*a), time.process_time()) for a in spread]
    made = [(after - before, batch) for before, batch, after in made]

    def step(batch):
        for parameter in parameters:
            parameter.grad = None
        loss_of(batch)[0].backward()

    step(made[0][1])
    trained = median(seconds(lambda b=batch: step(b)) for _, batch in made[1:])
    rendered = median(s for s, _ in made[1:])
    size = stage.batch_size
    speeds = f"{size / trained:.1f} scenes/s trained, {size / rendered:.1f} scenes/s made"
    print(f"{stage.name}: {speeds}, batches of {size}")


def vision_ratio(trainer: Trainer, rounds: int, batch: int = 16) -> None:
    """Forward and backward of the vision tower: ours, and the class's own on the same images; in turns."""
    network, visual = trainer.network, trainer.network.model.visual
    visual.requires_grad_(True)
    images = np.random.default_rng(0).integers(0, 256, (batch, *[arch.IMAGE_SIZE] * 2, 3), dtype=np.uint8)
    pixels, side = patches(images), arch.IMAGE_SIZE // arch.PATCH
    twice = pixels.view(-1, 3, 1, arch.PATCH, arch.PATCH).expand(-1, 3, 2, arch.PATCH, arch.PATCH).flatten(1)
    sizes = torch.tensor([[1, side, side]] * batch)
    runs = {
        "library": lambda: visual(twice, sizes).pooler_output.square().mean().backward(),
        "ours": lambda: network.visual(pixels)[0].square().mean().backward(),
    }
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            visual.zero_grad()
            times[name].append(seconds(run))
    speed = {name: batch / median(t) for name, t in times.items()}
    ratio = median(a / b for a, b in zip(times["library"], times["ours"], strict=True))
    print(
        f"vision tower, forward and backward: library {speed['library']:.1f} images/s, "
        f"ours {speed['ours']:.1f}, ratio {ratio:.2f}"
    )


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5, help="timed batches of each stage")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    trainer = Trainer(Recipe())
    for stage in trainer.recipe.stages:
        stage_throughput(trainer, stage, arguments.steps)
    vision_ratio(trainer, max(arguments.steps, 3))


if __name__ == "__main__":
    main()
