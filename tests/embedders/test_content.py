import hashlib
from pathlib import Path

import numpy as np
import pytest

from saber.embedders import CUT, UNKNOWN_WORDS, Content, ItemError
from saber.embedders.content import check_modalities, text_messages


def test_digest_depends_on_content_and_not_on_the_place_of_the_file(tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    (tmp_path / "b é.png").write_bytes(b"pixels")
    (tmp_path / "c.png").write_bytes(b"other")
    a, b, c = (Content(image=tmp_path / n).digest() for n in ("a.png", "b é.png", "c.png"))
    assert a == b != c
    assert len(a) == 64 and int(a, 16) >= 0


def test_digests_of_different_kinds_never_meet(tmp_path):
    image = tmp_path / "a.png"
    image.write_bytes(b"red")
    contents = [
        Content(text="red"),
        Content(text="red "),
        Content(text="Red"),
        Content(text=""),
        Content(image=image),
        Content(text="red", image=image),
        Content(text="", image=image),
        Content(text="rouge é"),
        Content(text="\ud800"),  # a lone surrogate, as broken files hold them
    ]
    assert len({content.digest() for content in contents}) == len(contents)


def test_digest_is_the_documented_formula(tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    parts = b"text" + hashlib.sha256(b"red").digest() + b"image" + hashlib.sha256(b"pixels").digest()
    expected = hashlib.sha256(b"saber content 1" + parts).hexdigest()
    assert Content(text="red", image=tmp_path / "a.png").digest() == expected


def test_what_a_content_may_be():
    with pytest.raises(ValueError, match="empty Content"):
        Content()
    with pytest.raises(TypeError, match="must be a str"):
        Content(text=3)
    assert Content(image="a/b.png").image == Path("a/b.png")
    assert Content(image="a.png") == Content(image=Path("a.png"))
    assert Content(text="x", image="a.png").modalities == {"text", "image"}
    assert str(Content(text="x" * 100)) == f"text '{'x' * 57}...'"
    assert str(Content(text="t", image="a.png")) == "image a.png with text 't'"


def test_missing_file_raises_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        Content(image=tmp_path / "none.png").digest()


def test_item_error_names_the_first_few_and_counts_the_rest():
    failures = [(i, Content(text=f"t{i}"), "broken") for i in range(8)]
    message = str(ItemError(failures, hint="(kept)"))
    assert "item 0 (text 't0'): broken" in message and "item 4" in message and "item 5" not in message
    assert message.endswith("... and 3 more\n(kept)")
    assert ItemError(failures).failures == tuple(failures)


def test_check_modalities_names_each_offender():
    contents = [Content(text="a"), Content(image="b.png"), Content(text="c", image="d.png")]
    check_modalities("m", frozenset({"text", "image"}), contents)
    with pytest.raises(ItemError, match="m takes text only") as caught:
        check_modalities("m", frozenset({"text"}), contents)
    assert [row for row, _, _ in caught.value.failures] == [1, 2]


def test_text_messages_count():
    flags = np.array([0, CUT, CUT | UNKNOWN_WORDS, 0], np.uint8)
    cut, unknown = text_messages("m", flags)
    assert "2 of 4 texts are longer" in cut and "1 of 4 texts hold words" in unknown
    assert text_messages("m", np.zeros(3, np.uint8)) == []
