import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber.metrics.cosine import GRID, cosine_scores, grid_chunks, to_grid


def unit(rng, *shape):
    vectors = rng.standard_normal(shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("dim", [1, 3, 64, 2048])
def test_equals_the_cosine_in_float64_within_1e_7(dim):
    rng = np.random.default_rng(dim)
    queries, gallery = unit(rng, 20, dim), unit(rng, 30, dim)
    a, b = queries.astype(np.float64), gallery.astype(np.float64)
    expected = (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(cosine_scores(queries, gallery), expected, rtol=0, atol=1e-7)


def test_hand_computed():
    scores = cosine_scores([[0.6, 0.8]], [[1, 0], [0, 1], [0.8, 0.6], [-0.6, -0.8]])
    np.testing.assert_allclose(scores, [[0.6, 0.8, 0.96, -1.0]], atol=1e-7)


@pytest.mark.parametrize("dim", [7, 512, 4096])
def test_is_the_exact_product_of_the_rounded_vectors(dim):
    rng = np.random.default_rng(dim)
    flat = np.full((1, dim), dim**-0.5)  # aligned with itself: the largest partial sums there can be
    left, right = np.vstack([unit(rng, 2, dim), flat]), np.vstack([unit(rng, 3, dim), flat])
    whole = [[[int(x) for x in row] for row in to_grid(vectors)] for vectors in (left, right)]
    expected = [[sum(x * y for x, y in zip(q, g, strict=True)) / 2**52 for g in whole[1]] for q in whole[0]]
    assert cosine_scores(left, right).tolist() == expected


def test_each_entry_depends_on_its_two_vectors_alone():
    rng = np.random.default_rng(0)
    queries, gallery = unit(rng, 37, 129), unit(rng, 83, 129)
    whole = cosine_scores(queries, gallery)
    single = [
        [cosine_scores(queries[i : i + 1], gallery[j : j + 1])[0, 0] for j in range(83)] for i in range(37)
    ]
    assert whole.tolist() == single
    dims = rng.permutation(129)  # another order of summation
    assert to_grid(gallery)[:, dims].tolist() == to_grid(np.ascontiguousarray(gallery))[:, dims].tolist()
    shuffled = to_grid(queries)[:, dims] @ to_grid(gallery)[:, dims].T / GRID**2
    assert shuffled.tolist() == whole.tolist()


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scale=st.floats(0.9992, 1.0008), seed=st.integers(0, 1000))
def test_length_within_the_tolerance_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    queries, gallery = unit(rng, 3, 16), unit(rng, 5, 16)
    scaled = cosine_scores(queries, scale * gallery.astype(np.float64))
    np.testing.assert_allclose(scaled, cosine_scores(queries, gallery), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([np.nan, 1.0], "row 12 contains NaN or Inf"),
        ([np.inf, 0.0], "row 12 contains NaN or Inf"),
        ([0.0, 0.0], "row 12 is the zero vector"),
        ([1.0, 1.0], "row 12 has norm 1.41421"),
        ([0.998, 0.0], "row 12 has norm 0.998"),
    ],
)
def test_bad_rows_are_named(value, message):
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], value, [1.0, 0.0]])
    with pytest.raises(ValueError, match=f"captions: {message}"):
        to_grid(vectors, "captions", rows=range(10, 14))
    with pytest.raises(ValueError, match=message.replace("12", "200002")):  # far behind the first piece
        to_grid(np.vstack([np.tile(vectors[:1], (200_000, 1)), vectors]))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (4,), (2, 2, 2)])
def test_empty_or_misshapen_raises(shape):
    with pytest.raises(ValueError, match=r"vectors: (empty|expected)"):
        to_grid(np.ones(shape))


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="queries have dimension 2, gallery 3"):
        cosine_scores([[1, 0]], [[1, 0, 0]])


class Rereadable:
    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        yield from self.parts


@pytest.mark.parametrize("chunk_size", [1, 3, 10, 100])
def test_all_kinds_of_gallery_give_the_same_rows(chunk_size, tmp_path):
    gallery = unit(np.random.default_rng(1), 10, 6)
    np.save(tmp_path / "g.npy", gallery)
    mapped = np.load(tmp_path / "g.npy", mmap_mode="r")
    parts = [gallery[:4], gallery[4:5], gallery[5:]]
    for kind in (gallery, mapped, mapped[:], parts, tuple(parts), Rereadable(parts)):
        chunks = list(grid_chunks(kind, chunk_size))
        assert np.concatenate([rows for rows, _ in chunks]).tolist() == list(range(10))
        assert max(len(c) for _, c in chunks) <= chunk_size
        np.testing.assert_array_equal(np.vstack([c for _, c in chunks]), to_grid(gallery))
        wanted = np.array([0, 4, 5, 9, 12])
        some = list(grid_chunks(kind, chunk_size, wanted))
        assert np.concatenate([rows for rows, _ in some]).tolist() == [0, 4, 5, 9]
        np.testing.assert_array_equal(np.vstack([c for _, c in some]), to_grid(gallery)[[0, 4, 5, 9]])


def test_memory_map_with_unsaved_changes_keeps_them(tmp_path):
    np.save(tmp_path / "g.npy", unit(np.random.default_rng(2), 5, 4))
    mapped = np.load(tmp_path / "g.npy", mmap_mode="c")
    mapped[:] = [0, 0, 1, 0]
    for _ in range(2):
        rows = np.vstack([c for _, c in grid_chunks(mapped, 2)])
        assert (rows == [0, 0, GRID, 0]).all()


def test_error_in_a_later_chunk_names_the_row_of_the_whole_gallery():
    gallery = unit(np.random.default_rng(3), 9, 4)
    gallery[7] = 0
    with pytest.raises(ValueError, match="gallery: row 7 is the zero vector"):
        list(grid_chunks([gallery[:5], gallery[5:]], chunk_size=2))
    with pytest.raises(ValueError, match="gallery: row 7 is the zero vector"):
        list(grid_chunks([gallery[:5], gallery[5:]], chunk_size=9, wanted=np.array([1, 7])))


def test_unusable_galleries():
    gallery = unit(np.random.default_rng(4), 4, 3)
    with pytest.raises(TypeError, match="one-shot iterator"):
        list(grid_chunks(iter([gallery]), 2))
    with pytest.raises(ValueError, match="gallery: empty"):
        list(grid_chunks([], 2))
    with pytest.raises(ValueError, match="gallery: empty"):
        list(grid_chunks(gallery[:0], 2))
    with pytest.raises(ValueError, match=r"gallery: expected arrays of shape \(n, dim\), got \(3,\)"):
        list(grid_chunks(gallery[0], 2))
    with pytest.raises(ValueError, match="chunk_size must be at least 1"):
        list(grid_chunks(gallery, 0))
