"""The miniature whose weights ship with the repository: complete, verified, and at home in its vocabulary."""

import numpy as np

from saber.embedders import Content, load_embedder, load_registry
from saber.vocabulary import load_vocabulary


def test_every_local_folder_ships_and_its_weights_are_pinned():
    shipped = [entry for entry in load_registry().values() if entry.folder]
    assert [entry.name for entry in shipped] == ["mini-clip"]
    for entry in shipped:
        assert entry.sha256, f"{entry.name}: add the sha256 of its weights file to params/models.yaml"
        load_embedder(entry.name)  # raises when the folder is missing or the hash differs


def test_mini_clip_knows_the_words_of_the_mini_vocabulary_and_takes_ten_pairs():
    embedder = load_embedder("mini-clip", device="cpu")
    known = load_vocabulary("known")
    longest = sorted((o.name for o in known.objects), key=lambda name: (-len(name.split()), name))
    names = [a.name for a in known.attributes]
    contents = [
        Content(text=f"A {attribute} {o.name}") for o in known.objects for attribute in (names[0], names[-1])
    ]
    contents += [Content(text=f"An {name} kayak, and a kite") for name in names]
    contents.append(Content(text=", ".join(f"a {a} {o}" for a, o in zip(names[:10], longest, strict=False))))
    np.testing.assert_array_equal(embedder.text_flags(contents), 0)
    vectors = embedder.embed(contents[:4])
    assert vectors.shape == (4, embedder.dim)
