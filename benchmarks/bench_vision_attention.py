"""Images per second of a small Qwen3-VL vision tower: the library's loop over images, and batched attention.

Run: ``python benchmarks/bench_vision_attention.py [--size 192] [--batch 64] [--rounds 5]``. One core, sdpa,
fp32; the two take turns in one process. It also prints what share of the batched time the patch embedding is,
a convolution whose stride is its kernel, and what share it would have as the linear layer that it equals.
"""

import argparse
import copy
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: every figure below is for one core
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import torch
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionConfig, Qwen3VLVisionModel

from saber.embedders.vision_attention import batch_vision_attention

PATCH = 16


def alternate(functions, rounds):
    """Processor seconds of each run, one list a function; they take turns, after one unmeasured run."""
    for function in functions:
        function()
    seconds = [[] for _ in functions]
    for _ in range(rounds):
        for own, function in zip(seconds, functions, strict=True):
            start = time.process_time()
            function()
            own.append(time.process_time() - start)
    return seconds


def forward(run):
    """The call without gradients."""

    def call():
        with torch.no_grad():
            run()

    return call


def training_step(run, towers):
    """Forward and backward, from no gradients."""

    def call():
        for tower in towers:
            tower.zero_grad()
        run().square().mean().backward()

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--size", type=int, default=192, help="side of the images in pixels, a multiple of 32"
    )
    parser.add_argument("--batch", type=int, default=64, help="images in a batch")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    side = arguments.size // PATCH
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = Qwen3VLVisionConfig(
        hidden_size=128,
        depth=4,
        num_heads=4,
        intermediate_size=512,
        patch_size=PATCH,
        out_hidden_size=128,
        num_position_embeddings=144,
        deepstack_visual_indexes=[1],
    )
    loop = Qwen3VLVisionModel(config)
    batched = copy.deepcopy(loop)
    batch_vision_attention(batched)
    grids = torch.tensor([[1, side, side]] * arguments.batch)
    patches = torch.randn(arguments.batch * side**2, 3 * config.temporal_patch_size * PATCH**2)
    towers = [lambda tower=tower: tower(patches, grids).pooler_output for tower in (loop, batched)]
    with torch.no_grad():
        difference = (towers[0]() - towers[1]()).abs().max()
    print(
        f"hidden 128, depth 4, 4 heads, {arguments.batch} images of {arguments.size} px ({side**2} patches)"
    )
    print(f"largest difference of an output: {difference:.1e}")

    embed, convolution = batched.patch_embed, batched.patch_embed.proj

    def linear():
        return torch.nn.functional.linear(patches, convolution.weight.flatten(1), convolution.bias)

    embeddings = [lambda: embed(patches), linear]
    print("                 loop images/s  batched images/s  batched/loop  patch embedding: share  as linear")
    for name, wrap in (
        ("forward", forward),
        ("and backward", lambda run: training_step(run, (loop, batched))),
    ):
        slow, fast, conv, product = alternate([wrap(run) for run in towers + embeddings], arguments.rounds)
        ratio = median(a / b for a, b in zip(slow, fast, strict=True))
        rates = [arguments.batch / median(seconds) for seconds in (slow, fast)]
        share, smaller = (median(seconds) / median(fast) for seconds in (conv, product))
        print(f"{name:16} {rates[0]:13.1f} {rates[1]:17.1f} {ratio:13.3f} {share:23.1%} {smaller:10.1%}")
    with torch.no_grad():
        exact = torch.nn.functional.linear(
            patches.double(), convolution.weight.flatten(1).double(), convolution.bias.double()
        )
        errors = [(run() - exact).abs().max() / exact.abs().max() for run in embeddings]
    print(
        f"patch embedding, largest error beside fp64, of the largest value: "
        f"convolution {errors[0]:.1e}, linear {errors[1]:.1e}"
    )


if __name__ == "__main__":
    main()
