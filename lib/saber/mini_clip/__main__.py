"""``python -m saber.mini_clip train [--folder DIR] [--seed N]``: make the shipped weights again."""

import argparse
import os
from pathlib import Path


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m saber.mini_clip", description=__doc__)
    parser.add_argument("command", choices=["train"])
    parser.add_argument(
        "--folder", type=Path, default=Path("mini-clip"), help="where to write (default mini-clip)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    parser.add_argument("--workers", type=int, default=2, help="processes that render (default 2)")
    arguments = parser.parse_args()

    # a spinning OpenMP thread on a shared core slows everything many times over
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch

    from saber.mini_clip.train import Recipe, train

    torch.set_num_threads(arguments.threads)
    print("sha256", train(arguments.folder.resolve(), Recipe(seed=arguments.seed), arguments.workers))


if __name__ == "__main__":
    main()
