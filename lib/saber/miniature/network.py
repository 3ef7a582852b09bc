"""The model's forward pass on batches of equal images or of texts: same results, fewer steps.

`Qwen3VLModel.forward` repeats each image in time, loops over images in the vision tower's attention and finds
positions per item. All images of a training batch are alike, so that each is done once. The tests compare
with the model's own forward pass; nothing here is needed to use the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from transformers import PreTrainedTokenizerFast, Qwen3VLModel
from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb_vision
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

from saber.miniature import architecture as arch


def patches(images: np.ndarray) -> torch.Tensor:
    """uint8 ``(n, 192, 192, 3)`` -> float32 ``(n, 144, 768)`` in -1..1, the patches in merging order."""
    n, side, p, m = len(images), arch.IMAGE_SIZE // arch.CELL, arch.PATCH, arch.MERGE
    x = images.reshape(n, side, m, p, side, m, p, 3)  # (n, y, my, py, x, mx, px, c)
    x = x.transpose(0, 1, 4, 2, 5, 7, 3, 6)  # (n, y, x, my, mx, c, py, px)
    x = np.ascontiguousarray(x).reshape(n, (side * m) ** 2, 3 * p * p)
    return torch.from_numpy(x).float().div_(127.5).sub_(1)


@dataclass(frozen=True)
class Prompt:
    """Token ids before and after the content of the user's message."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class Network:
    """A model and its tokenizer, with the fixed parts of its inputs worked out once."""

    def __init__(self, model: Qwen3VLModel, tokenizer: PreTrainedTokenizerFast):
        self.model, self.tokenizer = model, tokenizer
        self.embed, self.describe = (self._prompt(x) for x in (arch.DEFAULT_INSTRUCTION, arch.DESCRIBE))

    def _prompt(self, instruction: str) -> Prompt:
        messages = [
            {"role": "system", "content": instruction},
            {"role": "user", "content": arch.SPECIAL[arch.IMAGE]},
        ]
        ids = self.tokenizer.apply_chat_template(
            messages, chat_template=arch.CHAT_TEMPLATE, add_generation_prompt=True, return_dict=False
        )
        at = ids.index(arch.IMAGE)
        return Prompt(tuple(ids[:at]), tuple(ids[at + 1 :]))

    @property
    def words(self) -> torch.Tensor:
        """The word embeddings ``(vocabulary, hidden)``, tied to the output."""
        return self.model.language_model.embed_tokens.weight

    @cached_property
    def _grid(self) -> dict:
        """What depends on the size of the images only."""
        side = arch.IMAGE_SIZE // arch.PATCH
        grid, visual = torch.tensor([[1, side, side]]), self.model.visual
        indices, weights = get_vision_interpolation_indices_and_weights(
            grid,
            num_grid_per_side=visual.num_grid_per_side,
            mode=visual.interpolation_mode,
            align_corners=visual.interpolation_align_corners,
            spatial_merge_size=arch.MERGE,
        )
        cos, sin = visual.rotary_pos_emb(torch.zeros(1), get_vision_position_ids(grid, arch.MERGE))
        ids = torch.tensor([[*self.embed.before, *self._image_ids, *self.embed.after]])
        positions, _ = self.model.get_rope_index(
            ids, mm_token_type_ids=(ids == arch.IMAGE).int(), image_grid_thw=grid
        )
        return {"indices": indices, "weights": weights, "cos": cos, "sin": sin, "positions": positions}

    @property
    def _image_ids(self) -> list[int]:
        return [arch.VISION_START, *[arch.IMAGE] * arch.N_IMAGE_TOKENS, arch.VISION_END]

    def visual(self, pixels: torch.Tensor, frozen: bool = False) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Patches ``(n, 144, 768)`` -> image tokens ``(n, 36, hidden)`` and the deepstack's, one a level.

        frozen: only the mergers get gradients.
        """
        tower, grid, n = self.model.visual, self._grid, len(pixels)
        levels = []
        with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
            project = tower.patch_embed.proj
            # the processor repeats an image in time, so the two kernels see the same patch
            x = F.linear(pixels, project.weight.sum(2).flatten(1), project.bias)
            x = x + (tower.pos_embed(grid["indices"]) * grid["weights"][:, :, None]).sum(1)
            for number, block in enumerate(tower.blocks):
                x = x + self._attend(block.attn, block.norm1(x))
                x = x + block.mlp(block.norm2(x))
                if number in tower.deepstack_visual_indexes:
                    levels.append(x)
        merge = [tower.merger, *tower.deepstack_merger_list]
        tokens, *deep = (
            merger(level.flatten(0, 1)).view(n, arch.N_IMAGE_TOKENS, -1)
            for merger, level in zip(merge, [x, *levels], strict=True)
        )
        return tokens, deep

    def _attend(self, attention, x: torch.Tensor) -> torch.Tensor:
        n, length, _ = x.shape
        q, k, v = attention.qkv(x).view(n, length, 3, attention.num_heads, -1).unbind(2)  # (n, len, heads, d)
        cos, sin = self._grid["cos"], self._grid["sin"]
        q, k = (
            t.view(n, length, attention.num_heads, -1)
            for t in apply_rotary_pos_emb_vision(
                q.flatten(0, 1), k.flatten(0, 1), cos.repeat(n, 1), sin.repeat(n, 1)
            )
        )
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return attention.proj(y.transpose(1, 2).reshape(n, length, -1))

    def image_states(
        self,
        features: tuple[torch.Tensor, list[torch.Tensor]],
        prompt: Prompt,
        continuations: Sequence[Sequence[int]] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states after the prompt around an image and an optional continuation, and the token ids.

        Right-padded: ``(n, length, hidden)``, ``(n, length)``.
        """
        tokens, deep = features
        n = len(tokens)
        fixed = [*prompt.before, *self._image_ids, *prompt.after]
        ids, _ = pad([[*fixed, *c] for c in continuations or [()] * n])
        x = self.model.language_model.embed_tokens(ids)
        start = len(prompt.before) + 1
        x = torch.cat([x[:, :start], tokens, x[:, start + arch.N_IMAGE_TOKENS :]], 1)
        positions = self._grid["positions"]  # (3, 1, length); the two prompts are of equal length
        more = positions[:, :, -1:] + torch.arange(1, ids.shape[1] - len(fixed) + 1)
        states = self.model.language_model(
            inputs_embeds=x,
            position_ids=torch.cat([positions, more], 2).expand(3, n, -1),
            use_cache=False,
            visual_pos_masks=ids == arch.IMAGE,
            deepstack_visual_embeds=[d.flatten(0, 1) for d in deep],
        ).last_hidden_state
        return states, ids

    def text_states(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids ``(n, length)``, right-padded -> hidden states ``(n, length, hidden)``."""
        positions = torch.arange(ids.shape[1]).expand(3, len(ids), -1)
        return self.model.language_model(
            inputs_embeds=self.model.language_model.embed_tokens(ids), position_ids=positions, use_cache=False
        ).last_hidden_state

    def text_ids(
        self, texts: Sequence[str], prompt: Prompt, continuations: Sequence[Sequence[int]] | None = None
    ) -> list[list[int]]:
        """Token ids of each text inside the prompt, followed by its continuation."""
        encoded = self.tokenizer(list(texts), add_special_tokens=False).input_ids
        rest = continuations or [()] * len(encoded)
        return [[*prompt.before, *e, *prompt.after, *c] for e, c in zip(encoded, rest, strict=True)]

    def embed_texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors ``(n, hidden)`` of texts under the default instruction."""
        ids, lengths = pad(self.text_ids(texts, self.embed))
        return F.normalize(self.text_states(ids)[torch.arange(len(ids)), lengths - 1], dim=-1)

    def embed_images(self, images: np.ndarray, frozen: bool = False) -> torch.Tensor:
        """Unit vectors ``(n, hidden)`` of uint8 images ``(n, 192, 192, 3)`` under the default instruction."""
        states, _ = self.image_states(self.visual(patches(images), frozen), self.embed)
        return F.normalize(states[:, -1], dim=-1)


def pad(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of ids -> ``(n, longest)``, padded on the right (causal attention needs no mask), and lengths."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.full((len(rows), int(lengths.max())), arch.PAD)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids, lengths
