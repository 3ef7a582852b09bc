"""The numbers the paper's text claims, and those of them that its own tables let anyone recompute.

``claims.csv`` is data: claim, section, text (in our own words), expected, formula, table, model, baseline,
settings, scale. A formula takes the values of one model in one table, setting by setting, where a setting is
a column (a dataset row in Tables 3 and 10, whose columns are the models)::

    value     mean of the model's settings, times scale
    gain      mean over settings of model - baseline
    min_gain  smallest gain        max_gain  largest gain
    total     sum of the settings of one or more models, times scale
    wins      in how many settings the model beats every other model named in baseline ("*": every one)
    lowest    smallest value of the settings, over the models named in model ("*": all)
    highest   largest such value
    settings  how many settings the table has

``settings`` lists names separated by ``|`` (empty: all). A claim without a formula cannot be recomputed from
the tables; its ``note`` says what it would take.
"""

import math
from functools import cache

import pandas as pd

from saber.published.data import FOLDER, SPELLINGS, published, row_key

MODELS_IN_COLUMNS = frozenset({3, 10})
NOT_MODELS = ("# of Datasets", "# Classes", "# Instances")

# Half a unit of the last printed digit for the claim and for each printed cell that enters it.
TOLERANCE = {"value": 0.1, "gain": 0.15, "min_gain": 0.15, "max_gain": 0.15, "lowest": 0.05, "highest": 0.05}


def claims() -> pd.DataFrame:
    """Every numeric claim of the text: the columns of ``claims.csv`` (see the module's docstring)."""
    return _read().copy()


def recompute_claims() -> pd.DataFrame:
    """The claims of the text recomputed from the published tables.

    Returns:
        One row a claim: claim, section, text, published, recomputed, delta (recomputed - published),
        agrees (within what rounding of the printed numbers can explain), same (the recomputed value rounds
        to the published one, ties either way), note. Claims that the tables cannot answer have nan and <NA>
        there.
    """
    return _recomputed().copy()


@cache
def _recomputed() -> pd.DataFrame:
    frame = _read()
    recomputed = [_compute(claim) for claim in frame.itertuples()]
    out = frame[["claim", "section", "text"]].copy()
    out["published"] = frame["expected"]
    out["recomputed"] = recomputed
    out["delta"] = (out["recomputed"] - out["published"]).round(10)
    known = out["delta"].notna()
    allowed = frame["formula"].map(TOLERANCE).fillna(0.0) + 1e-9
    out["agrees"] = (out["delta"].abs() <= allowed).astype("boolean").where(known)
    out["same"] = (out["delta"].abs() <= 0.05 + 1e-9).astype("boolean").where(known)
    out["note"] = frame["note"]
    return out


@cache
def _read() -> pd.DataFrame:
    frame = pd.read_csv(FOLDER / "claims.csv", dtype=str, keep_default_na=False, encoding="utf-8")
    frame["expected"] = frame["expected"].astype(float)
    frame["table"] = pd.to_numeric(frame["table"].replace("", pd.NA)).astype("Int64")
    frame["scale"] = pd.to_numeric(frame["scale"].replace("", "1"))
    return frame


@cache
def _by_model(table: int) -> pd.DataFrame:
    """One table as models x settings (float)."""
    frame = published(table)
    frame["row"] = row_key(frame)
    frame["value"] = pd.to_numeric(frame["value"], errors="coerce")
    model, setting = ("column", "row") if table in MODELS_IN_COLUMNS else ("row", "column")
    wide = frame.pivot(index=model, columns=setting, values="value")
    return wide.loc[frame[model].unique(), frame[setting].unique()]


def _model(wide: pd.DataFrame, name: str) -> pd.Series:
    for spelling in (name, *SPELLINGS.get(name, ())):
        if spelling in wide.index:
            return wide.loc[spelling]
    raise ValueError(
        f"claims.csv names {name!r}, which the table does not have. It has: {', '.join(wide.index)}"
    )


def _models(wide: pd.DataFrame, names: str) -> pd.DataFrame:
    if names == "*":
        return wide.drop(index=[r for r in NOT_MODELS if r in wide.index])
    return pd.DataFrame([_model(wide, name) for name in names.split("|")])


def _compute(claim) -> float:
    if not claim.formula:
        return math.nan
    wide = _by_model(int(claim.table))
    if claim.settings:
        wide = wide[claim.settings.split("|")]
    if claim.formula == "settings":
        return float(wide.shape[1])
    if claim.formula in ("total", "lowest", "highest"):
        values = _models(wide, claim.model).to_numpy()
        return float(
            {"total": values.sum() * claim.scale, "lowest": values.min(), "highest": values.max()}[
                claim.formula
            ]
        )
    own = _model(wide, claim.model)
    if claim.formula == "value":
        return float(own.mean() * claim.scale)
    if claim.formula == "wins":
        others = _models(wide, claim.baseline).drop(index=own.name, errors="ignore")
        return float((own > others.max()).sum())
    gains = own - _model(wide, claim.baseline)
    reduce = {"gain": gains.mean, "min_gain": gains.min, "max_gain": gains.max}
    if claim.formula not in reduce:
        raise ValueError(f"claims.csv, claim {claim.claim!r}: unknown formula {claim.formula!r}")
    return float(reduce[claim.formula]())
