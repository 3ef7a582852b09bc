"""Settings of the whole suite: the same examples at every run, one thread a test process, no network."""

import os

import hypothesis

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ["HF_HUB_OFFLINE"] = "1"

# No database of examples: a run depends on nothing that an earlier one left in the checkout.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")
