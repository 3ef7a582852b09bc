"""All measured numbers as one long table, each beside the number the paper printed.

A notebook turns its measurements into rows (:func:`number_rows`) and writes them (:func:`write_numbers`); the
report merges the files of all notebooks (:func:`merge_numbers`). The columns are fixed::

    table, row, column   the cell, named as in saber.published
    value, n, low, high  measured value (percent in the result tables), number of cases, 95 % interval
    published, delta     the paper's number for the row this one stands for, and value - published
    profile, model_fingerprint

A cell that could not be measured has the value nan, and its reason goes to a second file beside the first.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from saber import files, paths
from saber.published import known_names, lookup

COLUMNS = tuple("table row column value n low high published delta profile model_fingerprint".split())
REASON_COLUMNS = ("table", "row", "column", "reason")
NUMERIC = ("value", "low", "high", "published", "delta")
MINIATURES = frozenset({"demo", "smoke"})

Reasons = Mapping[str | tuple[str, str], str]  # row, or (row, column) -> why there is no value


def profile_label(profile: str) -> str:
    """One sentence to stand wherever numbers of a profile are shown."""
    if profile in MINIATURES:
        return (
            f"Profile {profile}: the paper in miniature, with sprite images and small models. "
            "These are not the paper's results."
        )
    return (
        f"Profile {profile}: measured by this collection on its own draw of SABER (own vocabulary lists, and "
        "sprite images unless the profile says otherwise), not by the paper's authors."
    )


def number_rows(
    table: int | str,
    measured: pd.DataFrame,
    *,
    profile: str,
    published_row: Mapping[str, str | None] | None = None,
    published_column: Mapping[str, str | None] | None = None,
    fingerprints: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Measurements as rows of ``numbers.csv``.

    Args:
        table: number of the paper's table, or a name such as ``"section 5.1"`` for numbers of the text.
        measured: columns row, column, value and optionally n, low, high, published; one line a cell.
        profile: name of the profile.
        published_row: which row of the paper a row of ours stands for, or None for no comparison. Rows that
            are not in it are not compared.
        published_column: the same for columns, where the models are the columns (Tables 3, 10); default: the
            same name.
        fingerprints: fingerprint of the model behind a row.

    Returns:
        The frozen columns (see the module), in the order of ``measured``, validated.

    Raises:
        ValueError: see :func:`validate`; or a published name that no table of the paper has.
    """
    missing = [name for name in ("row", "column", "value") if name not in measured]
    if missing:
        raise ValueError(f"measured lacks the columns {missing}; it has {list(measured.columns)}")
    stands_for, same_as = dict(published_row or {}), dict(published_column or {})
    for name in (*stands_for.values(), *same_as.values()):
        if name is not None and name not in known_names():
            raise ValueError(f"the paper's tables have no row or column {name!r} to compare with")
    frame = measured.reindex(columns=["row", "column", "value", "n", "low", "high"]).reset_index(drop=True)
    if "published" in measured:
        frame["published"] = measured["published"].to_numpy()
    else:
        frame["published"] = [
            _published(table, stands_for.get(row), same_as.get(column, column))
            for row, column in zip(frame["row"], frame["column"], strict=True)
        ]
    frame["table"], frame["profile"] = table, profile
    frame["model_fingerprint"] = [(fingerprints or {}).get(row, "") for row in frame["row"]]
    for name in ("value", "low", "high", "published"):
        frame[name] = frame[name].astype(float)
    frame["n"] = frame["n"].astype("Int64")
    frame["delta"] = frame["value"] - frame["published"]
    frame = frame[list(COLUMNS)]
    validate(frame)
    return frame


def _published(table, row, column) -> float:
    return np.nan if row is None or column is None or isinstance(table, str) else lookup(table, row, column)


def validate(frame: pd.DataFrame) -> None:
    """Check rows of ``numbers.csv``.

    Raises:
        ValueError: other columns than the frozen ones; a cell (table, row, column) given twice; an infinite
            number; an interval that is half given or does not contain its value; n below 1; a delta that is
            not value - published; several profiles.
    """
    if tuple(frame.columns) != COLUMNS:
        raise ValueError(f"numbers need exactly the columns {', '.join(COLUMNS)}, not {list(frame.columns)}")
    numbers = frame[list(NUMERIC)].astype(float)
    low, value, high = numbers["low"], numbers["value"], numbers["high"]
    slack = 1e-9 * value.abs().clip(lower=1)  # bounds computed another way may differ in the last bit
    wrong = {
        "is given twice": frame.duplicated(["table", "row", "column"]),
        "holds an infinite number": np.isinf(numbers).any(axis=1),
        "has one end of its interval only": low.isna() != high.isna(),
        "has a value outside its interval [low, high]": (low > value + slack) | (value > high + slack),
        "has an interval but no value": low.notna() & value.isna(),
        "has n below 1": frame["n"].astype("Float64").lt(1).fillna(False).astype(bool),
        "has a delta that is not value - published": ~np.isclose(
            numbers["delta"], value - numbers["published"], atol=1e-6, equal_nan=True
        ),
        "has an empty row or column name": ~(frame["row"].astype(bool) & frame["column"].astype(bool)),
    }
    for what, where in wrong.items():
        if where.any():
            cell = frame[np.asarray(where)].iloc[0]
            raise ValueError(f"table {cell['table']}, row {cell['row']!r}, column {cell['column']!r} {what}")
    if frame["profile"].nunique() > 1:
        raise ValueError(f"numbers of several profiles in one table: {sorted(frame['profile'].unique())}")


def write_numbers(
    profile: str, table: int | str, frame: pd.DataFrame, reasons: Reasons | None = None
) -> Path:
    """Write ``numbers/table_NN.csv``, and ``numbers/reasons_NN.csv`` where values are missing.

    Args:
        profile, table: as in ``frame``.
        frame: from :func:`number_rows`.
        reasons: why there is no value, by row or by (row, column). Every nan needs one; a row that is not in
            ``frame`` at all (a model that could not be loaded) may have one.

    Returns:
        Path of the numbers. Both files are written atomically and have the same bytes for the same numbers.

    Raises:
        ValueError: see :func:`validate`; frame of another table or profile; a nan without a reason.
    """
    validate(frame)
    for name, expected in (("profile", profile), ("table", table)):
        other = [v for v in frame[name].unique() if v != expected]
        if other:
            raise ValueError(f"these numbers belong to {name} {other[0]}, not {expected}")
    missing = missing_cells(table, frame, reasons)
    silent = missing[missing["reason"] == ""]
    if len(silent):
        cell = silent.iloc[0]
        raise ValueError(
            f"table {table}, row {cell['row']!r}, column {cell['column']!r} has no value and no reason: pass "
            f"reasons={{{cell['row']!r}: 'why'}}, or (row, column) as the key for one cell"
        )
    folder, name = paths.numbers_dir(profile), _file_name(table)
    reasons_path = folder / f"reasons_{name}.csv"
    if len(missing):
        files.write_text(reasons_path, missing.to_csv(index=False, lineterminator="\n"))
    else:
        reasons_path.unlink(missing_ok=True)
    return files.write_text(folder / f"table_{name}.csv", _to_csv(frame))


def missing_cells(table: int | str, frame: pd.DataFrame, reasons: Reasons | None) -> pd.DataFrame:
    """Cells without a value and why (``""`` when nobody said): columns table, row, column, reason.

    A reason for a row that ``frame`` does not have is one line with an empty column.
    """
    reasons = dict(reasons or {})
    cells = [
        (table, row, column, reasons.get((row, column), reasons.get(row, "")))
        for row, column, value in zip(frame["row"], frame["column"], frame["value"], strict=True)
        if pd.isna(value)
    ]
    rows = set(frame["row"])
    cells += [(table, k, "", why) for k, why in reasons.items() if isinstance(k, str) and k not in rows]
    return pd.DataFrame(cells, columns=list(REASON_COLUMNS))


def merge_numbers(profile: str) -> pd.DataFrame:
    """Merge the tables of a profile into ``outputs/<profile>/numbers.csv`` and return them.

    Tables in the order of the paper, numbers of the text behind them, rows as written. The reasons of missing
    values go to ``outputs/<profile>/reasons.csv``.

    Raises:
        ValueError: a file that is not what :func:`write_numbers` writes.
    """
    frames = [_read(path) for path in _in_order(paths.numbers_dir(profile), "table")]
    merged = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))
    validate(merged)
    files.write_text(paths.outputs_dir(profile) / "numbers.csv", _to_csv(merged))
    reasons = read_reasons(profile)
    files.write_text(paths.outputs_dir(profile) / "reasons.csv", _to_csv(reasons))
    return merged


def read_reasons(profile: str) -> pd.DataFrame:
    """Reasons of all missing values of a profile: columns table, row, column, reason."""
    frames = [
        pd.read_csv(path, dtype=str, keep_default_na=False)
        for path in _in_order(paths.numbers_dir(profile), "reasons")
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(REASON_COLUMNS))


def _read(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    try:
        for name in NUMERIC:
            frame[name] = pd.to_numeric(frame[name].replace("", np.nan)).astype(float)
        frame["n"] = pd.to_numeric(frame["n"].replace("", pd.NA)).astype("Int64")
        frame["table"] = [int(t) if t.isdigit() else t for t in frame["table"]]
        validate(frame)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: {error}. Delete the file and rerun the notebook that writes it") from error
    return frame


def _to_csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, float_format="%.10g", lineterminator="\n")


def _file_name(table: int | str) -> str:
    if isinstance(table, str):
        return re.sub(r"[^A-Za-z0-9.]+", "_", table)
    return f"{table:02d}"


def _in_order(folder: Path, kind: str) -> list[Path]:
    numbered = re.compile(rf"{kind}_\d\d\.csv")
    return sorted(folder.glob(f"{kind}_*.csv"), key=lambda p: (not numbered.fullmatch(p.name), p.name))
