import numpy as np
import pytest

from saber import shards as module
from saber.shards import ShardFolder


def items(first, n, dim=3):
    """``n`` keys with vectors and flags that follow from their number."""
    numbers = range(first, first + n)
    keys = [i.to_bytes(32, "big") for i in numbers]
    vectors = np.array([[i, i + 0.25, -i] for i in numbers], np.float32)[:, :dim]
    return keys, vectors, np.array([i % 3 for i in numbers], np.uint8)


def files(folder):
    return sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("."))


def test_write_and_read_in_any_order(tmp_path):
    shards = ShardFolder(tmp_path)
    shards.write(*items(0, 5))
    shards.write(*items(5, 4))
    keys, vectors, flags = items(0, 9)
    for order in (range(9), [8, 0, 4, 4, 7]):
        got_vectors, got_flags = shards.read([keys[i] for i in order])
        np.testing.assert_array_equal(got_vectors, vectors[list(order)])
        np.testing.assert_array_equal(got_flags, flags[list(order)])
    assert len(shards) == 9 and keys[3] in shards and b"\xff" * 32 not in shards
    with pytest.raises(KeyError):
        shards.read([b"\xff" * 32])


def test_another_process_sees_what_is_written_after_refresh(tmp_path):
    mine, other = ShardFolder(tmp_path), ShardFolder(tmp_path)
    mine.write(*items(0, 3))
    assert len(other) == 0
    other.refresh()
    np.testing.assert_array_equal(other.read(items(0, 3)[0])[0], items(0, 3)[1])


def test_equal_shards_are_one_file(tmp_path):
    for _ in range(2):
        ShardFolder(tmp_path).write(*items(0, 3))
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_damage_is_noticed_and_the_file_set_aside(tmp_path, damage):
    shards = ShardFolder(tmp_path)
    shards.write(*items(0, 3))
    (victim,) = files(tmp_path)
    shards.write(*items(3, 3))
    data = bytearray(victim.read_bytes())
    if damage == "flip":
        data[-5] ^= 1
    victim.write_bytes({"cut": data[:-7], "flip": data, "empty": b"", "other": b"text" * 9}[damage])
    with pytest.warns(UserWarning, match="damaged embedding file .*set aside as .*computed again"):
        again = ShardFolder(tmp_path)
    assert len(again) == 3 and items(4, 1)[0][0] in again and items(0, 1)[0][0] not in again
    assert victim.with_name(victim.name + ".damaged").exists() and not victim.exists()
    ShardFolder(tmp_path)  # told once
    again.write(*items(0, 3))
    assert len(ShardFolder(tmp_path)) == 6


def test_half_written_files_are_not_looked_at(tmp_path):
    (tmp_path / ".0123-abc.safetensors").write_bytes(b"half")
    (tmp_path / "notes.safetensors").write_bytes(b"mine")
    assert len(ShardFolder(tmp_path)) == 0


def test_many_small_shards_become_one(tmp_path):
    shards = ShardFolder(tmp_path)
    for i in range(module.MAX_SMALL):
        shards.write(*items(10 * i, 10))
    shards.compact()
    assert len(files(tmp_path)) == module.MAX_SMALL  # few enough
    shards.write(*items(150, 15))  # five of them are there already
    other = ShardFolder(tmp_path)
    shards.compact()
    assert len(files(tmp_path)) == 1
    keys, vectors, flags = items(0, 165)
    for folder in (shards, ShardFolder(tmp_path)):
        assert len(folder) == 165
        np.testing.assert_array_equal(folder.read(keys)[0], vectors)
        np.testing.assert_array_equal(folder.read(keys)[1], flags)
    with pytest.raises(FileNotFoundError):  # its index is of before the merge
        other.read(keys)
    other.refresh()
    np.testing.assert_array_equal(other.read(keys)[0], vectors)


def test_an_item_in_two_shards_survives_the_loss_of_either(tmp_path):
    """What a process sees that looks when another has merged shards and not yet removed the parts."""
    for lost in (0, 1):
        folder = tmp_path / str(lost)
        folder.mkdir()
        shards = ShardFolder(folder)
        shards.write(*items(0, 4))
        shards.write(*items(0, 6))
        looking = ShardFolder(folder)
        (victim,) = (p for p in files(folder) if len(module.load(p.read_bytes())["keys"]) == (4, 6)[lost])
        victim.unlink()
        looking.refresh()
        assert len(looking) == (6, 4)[lost]
        np.testing.assert_array_equal(looking.read(items(0, 4)[0])[0], items(0, 4)[1])


def test_merged_shards_stay_within_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MERGED_BYTES", 3000)
    shards = ShardFolder(tmp_path)
    for i in range(40):
        shards.write(*items(10 * i, 10))
    assert all(500 < path.stat().st_size < 800 for path in files(tmp_path))
    shards.compact()
    assert 5 < len(files(tmp_path)) < 17
    assert all(path.stat().st_size < 3000 for path in files(tmp_path))
    np.testing.assert_array_equal(shards.read(items(0, 400)[0])[0], items(0, 400)[1])


def test_big_shards_are_left_alone(tmp_path, monkeypatch):
    shards = ShardFolder(tmp_path)
    for i in range(20):
        shards.write(*items(10 * i, 10))
    before = files(tmp_path)
    monkeypatch.setattr(module, "SMALL_BYTES", 100)
    shards.compact()
    assert files(tmp_path) == before


def test_merging_waits_for_no_one_and_cleans_up(tmp_path):
    import os

    from filelock import FileLock

    shards = ShardFolder(tmp_path)
    for i in range(20):
        shards.write(*items(10 * i, 10))
    old, new = tmp_path / ".old-1.safetensors", tmp_path / ".new-1.safetensors"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1, 1))
    with FileLock(tmp_path / ".compact.lock"):
        shards.compact()
    assert len(files(tmp_path)) == 20
    shards.compact()
    assert len(files(tmp_path)) == 1
    assert new.exists() and not old.exists()
