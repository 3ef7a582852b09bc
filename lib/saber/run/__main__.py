"""``python -m saber.run``: what ``run_all.sh`` calls once the environment is there."""

import sys

from saber.run.cli import main

sys.exit(main())
