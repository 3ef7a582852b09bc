"""Metrics: pure functions on arrays, without input or output.

Scores and credits: :mod:`.mcq`, :mod:`.retrieval`, :mod:`.average_precision`, on the exact cosines of
:mod:`.cosine`. Who contains whom: :mod:`.containment`; section 5.1's analyses: :mod:`.analyses`. Uncertainty:
:mod:`.intervals`, :mod:`.compare`, with chains kept whole by :mod:`.groups`. Rows of the tables:
:mod:`.summary`.

Values are fractions in [0, 1]; only the tables of :mod:`.summary` are in percent. NaN, Inf and zero vectors
raise, so do empty sets; ties never depend on the order of rows.
"""

from saber.metrics.analyses import containment_comparisons, outranking, top_four_share
from saber.metrics.average_precision import average_precision
from saber.metrics.compare import compare_all, holm, paired_accuracy, paired_mean
from saber.metrics.containment import containment_positives, exact_matches, proper_subsets, proper_supersets
from saber.metrics.cosine import cosine_scores
from saber.metrics.intervals import (
    bootstrap_mean_interval,
    bootstrap_ratio_interval,
    clustered_wilson_interval,
    wilson_interval,
)
from saber.metrics.mcq import mcq_credit, mcq_ties, question_scores, tied_questions
from saber.metrics.retrieval import gallery_average_precision, pair_scores, top_k
from saber.metrics.summary import accuracy_by_count, map_by_count

__all__ = [
    "accuracy_by_count",
    "average_precision",
    "bootstrap_mean_interval",
    "bootstrap_ratio_interval",
    "clustered_wilson_interval",
    "compare_all",
    "containment_comparisons",
    "containment_positives",
    "cosine_scores",
    "exact_matches",
    "gallery_average_precision",
    "holm",
    "map_by_count",
    "mcq_credit",
    "mcq_ties",
    "outranking",
    "pair_scores",
    "paired_accuracy",
    "paired_mean",
    "proper_subsets",
    "proper_supersets",
    "question_scores",
    "tied_questions",
    "top_four_share",
    "top_k",
    "wilson_interval",
]
