"""``python -m saber.miniature train [--folder DIR] [--seed N]``: make the shipped weights again."""

import argparse
import os
from pathlib import Path


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m saber.miniature", description=__doc__)
    parser.add_argument("command", choices=["train"])
    parser.add_argument(
        "--folder", type=Path, default=Path("miniature"), help="where to write (default miniature)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", default="none", help="a recipe changed in one point, such as text-tags")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    parser.add_argument("--workers", type=int, default=1, help="processes that make batches (default 1)")
    arguments = parser.parse_args()

    # a spinning OpenMP thread on a shared core slows everything many times over
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch

    from saber.miniature.train import Recipe, control, train

    torch.set_num_threads(arguments.threads)
    recipe = control(Recipe(seed=arguments.seed), arguments.control)
    print("sha256", train(arguments.folder.resolve(), recipe, arguments.workers))


if __name__ == "__main__":
    main()
