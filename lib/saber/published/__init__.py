"""Every number of the paper's Tables 1-20 and of its text, as data, with checks of its inner consistency."""

from saber.published.claims import claims, recompute_claims
from saber.published.consistency import inconsistencies
from saber.published.data import TABLES, known_names, lookup, published, row_key

__all__ = [
    "TABLES",
    "claims",
    "inconsistencies",
    "known_names",
    "lookup",
    "published",
    "recompute_claims",
    "row_key",
]
