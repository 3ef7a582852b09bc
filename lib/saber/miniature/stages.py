"""The losses of the three stages.

dense: every image token names the object and the attribute that cover it, through the word embeddings.
generative: write what an image or a text states; and tags: at an early decoder layer the later word of each
pair in a text, and each image token, show their object and their attribute, through one head for both.
contrastive: image and text of the same scene find each other in the batch (InfoNCE).
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

from saber.miniature import architecture as arch
from saber.miniature import language
from saber.miniature.batches import Contrastive, Generative
from saber.miniature.network import Network, pad, patches
from saber.training_scenes import Scenes
from saber.vocabulary import load_vocabulary

TAG_LAYER = 2  # index of the decoder layer whose output shows the tags


class Losses(torch.nn.Module):
    """The temporary scales of the losses, and the losses: each returns a scalar and figures to show."""

    def __init__(self, network: Network, inverse_temperature: float = 6.0):
        super().__init__()
        self.network = network  # no module: a checkpoint holds its parameters apart
        self.dense_scale = torch.nn.Parameter(torch.tensor(2.0))
        self.tag_scale = torch.nn.Parameter(torch.tensor(0.0))
        self.temperature = torch.nn.Parameter(torch.tensor(float(np.log(inverse_temperature))))
        known, words = load_vocabulary("known"), language.load_language()
        self.seen = [self._ids(x.name for x in g) for g in (known.attributes, known.objects)]
        every = (words.all_attributes(), words.all_objects())
        self.every = [self._ids(names) for names in every]
        self.place = [{int(t): i for i, t in enumerate(ids)} for ids in self.every]

    def _ids(self, names) -> torch.Tensor:
        return torch.tensor(self.network.tokenizer.convert_tokens_to_ids(list(names)))

    def name_pair(
        self,
        vectors: torch.Tensor,
        groups: list[torch.Tensor],
        labels: Sequence[torch.Tensor],
        scale: torch.Tensor,
        smoothing: float = 0.0,
    ) -> tuple[torch.Tensor, list[float]]:
        """Cross-entropy of naming each vector's attribute and object by the word embeddings; accuracies."""
        loss, right = vectors.new_zeros(()), []
        for ids, label in zip(groups, labels, strict=True):
            logits = vectors @ self.network.words[ids].T * scale.exp()
            loss = loss + F.cross_entropy(logits, label, label_smoothing=smoothing)
            right.append((logits.argmax(1) == label).float().mean().item())
        return loss, right

    def dense(self, scenes: Scenes, features=None) -> tuple[torch.Tensor, dict]:
        """Image tokens name what covers them; the levels of the deepstack too, with less weight."""
        features = features or self.network.visual(patches(scenes.images))
        covered = torch.from_numpy(scenes.patches >= 0)
        labels = [torch.from_numpy(scenes.labels(which))[covered] for which in (0, 1)]
        loss, figures = 0.0, {}
        for i, tokens in enumerate([features[0], *features[1]]):
            part, right = self.name_pair(tokens[covered], self.seen, labels, self.dense_scale, 0.05)
            loss = loss + part * (1.0 if i == 0 else 0.4)
            if i == 0:
                figures = {"attributes": right[0], "objects": right[1]}
        return loss, figures

    def generative(
        self, batch: Generative, tags: Sequence[str] = ("text", "image")
    ) -> tuple[torch.Tensor, dict]:
        """Writing after images and texts, with tags in the named modalities."""
        network, figures = self.network, {}
        kept: list[torch.Tensor] = []
        layer = network.model.language_model.layers[TAG_LAYER]
        hook = layer.register_forward_hook(
            lambda _m, _i, out: kept.append(out if torch.is_tensor(out) else out[0])
        )
        try:
            image_loss = self._write_images(batch, figures)
            text_loss, ids = self._write_texts(batch, figures)
        finally:
            hook.remove()
        loss = image_loss + text_loss
        places = {
            "image": lambda: self._image_places(batch.scenes),
            "text": lambda: self._text_places(batch, ids),
        }
        for hidden, modality in zip(kept, ("image", "text"), strict=True):
            if modality in tags:
                rows, columns, labels = places[modality]()
                vectors = F.rms_norm(hidden[rows, columns], hidden.shape[-1:])
                part, right = self.name_pair(vectors, self.every, labels, self.tag_scale)
                loss = loss + part
                figures |= {f"{modality} tag attr": right[0], f"{modality} tag obj": right[1]}
        return loss, figures

    def _write_images(self, batch: Generative, figures: dict) -> torch.Tensor:
        network, prompt = self.network, self.network.describe
        features = network.visual(patches(batch.scenes.images), frozen=True)
        targets = self._targets(batch.image_targets)
        states, ids = network.image_states(features, prompt, targets)
        start = ids.shape[1] - max(map(len, targets))
        loss = self._next_word(states, ids, [start] * len(targets), list(map(len, targets)))
        figures["write image"] = loss.item()
        return loss

    def _write_texts(self, batch: Generative, figures: dict) -> tuple[torch.Tensor, list[list[int]]]:
        targets = self._targets(batch.text_targets)
        rows = self.network.text_ids(batch.texts, self.network.describe, targets)
        ids, lengths = pad(rows)
        starts = [int(n) - len(t) for n, t in zip(lengths, targets, strict=True)]
        loss = self._next_word(self.network.text_states(ids), ids, starts, list(map(len, targets)))
        figures["write text"] = loss.item()
        return loss, rows

    def _targets(self, texts: list[str]) -> list[list[int]]:
        encoded = self.network.tokenizer(texts, add_special_tokens=False).input_ids
        return [[*e, arch.IM_END] for e in encoded]

    def _next_word(self, states, ids, starts, lengths) -> torch.Tensor:
        """Cross-entropy of the ``lengths[i]`` tokens of row i from ``starts[i]`` on."""
        rows = torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])
        columns = torch.cat([torch.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
        return F.cross_entropy(states[rows, columns - 1] @ self.network.words.T, ids[rows, columns])

    def _image_places(self, scenes: Scenes):
        rows, cells = torch.nonzero(torch.from_numpy(scenes.patches >= 0), as_tuple=True)
        start = len(self.network.describe.before) + 1
        labels = []
        for which in (0, 1):
            seen = torch.from_numpy(scenes.labels(which))[rows, cells]
            table = torch.tensor([self.place[which][int(t)] for t in self.seen[which]])
            labels.append(table[seen])
        return rows, cells + start, labels

    def _text_places(self, batch: Generative, ids: list[list[int]]):
        """The later word of each pair, where both are known."""
        convert, start = self.network.tokenizer.convert_tokens_to_ids, len(self.network.describe.before)
        rows, columns, labels = [], [], ([], [])
        for i, pairs in enumerate(batch.pairs):
            for pair in pairs:
                tokens = [convert(word) for word in pair]
                rows.append(i)
                columns.append(max(ids[i].index(t, start) for t in tokens))
                for which, t in enumerate(tokens):
                    labels[which].append(self.place[which][t])
        return torch.tensor(rows), torch.tensor(columns), [torch.tensor(x) for x in labels]

    def contrastive(self, batch: Contrastive) -> tuple[torch.Tensor, dict]:
        """InfoNCE of image and text, and with half the weight of image and image, and of text and text."""
        network, n, half = self.network, len(batch.images), len(batch.second)
        images = network.embed_images(np.concatenate([batch.images, batch.second]), frozen=True)
        groups = [batch.captions, batch.texts, batch.left, batch.right]
        texts = network.embed_texts([t for group in groups for t in group])
        captions, others, left, right = texts.split([len(g) for g in groups])
        image, second = images.split([n, half])
        loss, figures = 0.0, {}
        sides = {
            "image-text": (image, captions, 1.0),
            "image-image": (image[:half], second, 0.5),
            "text-text": (torch.cat([captions, left]), torch.cat([others, right]), 0.5),
        }
        for name, (a, b, weight) in sides.items():
            scores = a @ b.T * self.temperature.exp()
            target = torch.arange(len(a))
            loss = loss + weight * (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
            figures[name] = (scores.argmax(1) == target).float().mean().item()
        return loss, figures
