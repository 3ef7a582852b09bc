import hashlib
import json

import numpy as np
import pytest

from saber.embedders import Content, ItemError
from saber.embedders.vectors import fingerprint, folder_digests, major_versions, unit_rows


def contents(n):
    return [Content(text=f"t{i}") for i in range(n)]


def test_unit_rows_by_hand():
    rows = unit_rows([[3.0, 4.0], [0.0, -2.0]], contents(2))
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, np.array([[0.6, 0.8], [0, -1]], np.float32))


def test_direction_is_kept_for_tiny_and_huge_vectors():
    rows = unit_rows(np.array([[1e-30, 1e-30], [1e30, 1e30]]), contents(2))
    np.testing.assert_allclose(rows, 0.5**0.5, rtol=1e-6)


def test_every_bad_row_is_named():
    bad = np.array([[1, 1], [np.nan, 1], [0, 0], [np.inf, 1]])
    with pytest.raises(ItemError) as caught:
        unit_rows(bad, contents(4))
    assert [(row, reason) for row, _, reason in caught.value.failures] == [
        (1, "the model returned a vector with NaN or Inf"),
        (2, "the model returned a zero vector"),
        (3, "the model returned a vector with NaN or Inf"),
    ]
    assert "text 't2'" in str(caught.value)


def test_one_row_per_content():
    with pytest.raises(ValueError, match="2 contents gave an array of shape"):
        unit_rows(np.ones((3, 4)), contents(2))


def test_fingerprint_sees_every_fact_and_no_order():
    a = {"id": "x", "files": {"w": "1", "c": "2"}}
    assert fingerprint(a) == fingerprint({"files": {"c": "2", "w": "1"}, "id": "x"})
    assert fingerprint(a) == hashlib.sha256(json.dumps(a, sort_keys=True).encode()).hexdigest()
    assert len({fingerprint(a | {"id": v}) for v in ("x", "y", None, "")}) == 4


def test_folder_digests_leave_out_what_cannot_matter(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("config.json", "sub/model.safetensors", "README.md", ".hidden.json", "LICENSE"):
        (tmp_path / name).write_text(name)
    digests = folder_digests(tmp_path)
    assert list(digests) == ["config.json", "sub/model.safetensors"]
    assert digests["config.json"] == hashlib.sha256(b"config.json").hexdigest()


def test_major_versions():
    assert major_versions("numpy") == {"numpy": np.__version__.split(".")[0]}
