"""Vision attention over a whole batch of images, where transformers calls the attention once per image.

In transformers 5.23 the vision towers of Qwen3-VL, Qwen3.5 and Qwen2.5-VL lay the patches of all images one
after another and, unless flash attention is on, attend to them image by image. Images with the same number of
patches fit in one call.
Source: https://github.com/huggingface/transformers/blob/main/src/transformers/models/qwen3_vl/modeling_qwen3_vl.py
"""

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLVisionAttention
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionAttention
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    Qwen3VLVisionAttention,
    apply_rotary_pos_emb_vision,
    eager_attention_forward,
)
from transformers.utils.generic import is_flash_attention_requested


class _Batched:
    """The forward that replaces the library's, before its class in the order of inheritance."""

    def forward(self, hidden_states, cu_seqlens, position_embeddings=None, max_seqlen=None, **kwargs):
        """Patches ``(n, dim)`` of all images to ``(n, dim)``; image i is cu_seqlens[i] to cu_seqlens[i + 1].

        Every frame of a video, and every window where a tower has windows, counts as an image here.
        """
        lengths = [] if is_flash_attention_requested(self.config) else cu_seqlens.diff().tolist()
        if len(set(lengths)) == len(lengths):  # nothing to put together
            return super().forward(
                hidden_states,
                cu_seqlens=cu_seqlens,
                position_embeddings=position_embeddings,
                max_seqlen=max_seqlen,
                **kwargs,
            )
        states = self.qkv(hidden_states).unflatten(1, (3, self.num_heads, self.head_dim))
        query, key, value = states.unbind(1)  # each (n, heads, head_dim)
        query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )

        def attended(*states):  # each (images, length, heads, head_dim), as the result
            output, _ = attend(
                self,
                *(s.transpose(1, 2) for s in states),  # (images, heads, length, head_dim)
                attention_mask=None,
                scaling=self.scaling,
                dropout=self.attention_dropout if self.training else 0.0,
                is_causal=False,
                **kwargs,
            )
            return output

        if len(set(lengths)) == 1:  # the usual case, without copies
            output = attended(*(s.unflatten(0, (-1, lengths[0])) for s in (query, key, value)))
            return self.proj(output.reshape(len(hidden_states), -1))
        images = [s.split(lengths) for s in (query, key, value)]
        outputs = [None] * len(lengths)
        for length in sorted(set(lengths)):
            group = [i for i, own in enumerate(lengths) if own == length]
            together = attended(*(torch.stack([image[i] for i in group]) for image in images))
            for i, output in zip(group, together, strict=True):
                outputs[i] = output
        return self.proj(torch.cat(outputs).flatten(1))


class _Qwen3VL(_Batched, Qwen3VLVisionAttention):
    pass


class _Qwen3_5(_Batched, Qwen3_5VisionAttention):
    pass


class _Qwen2_5_VL(_Batched, Qwen2_5_VLVisionAttention):
    pass


_BATCHED = {batched.__bases__[1]: batched for batched in (_Qwen3VL, _Qwen3_5, _Qwen2_5_VL)}


def batch_vision_attention(model: torch.nn.Module) -> int:
    """Let a Qwen vision tower attend to all equal-sized images of a batch at once, where the library loops.

    Works in place on every such tower in ``model``, also inside wrappers of sentence-transformers and peft.
    Vectors and gradients stay the same up to rounding. Weights, their names and the config are not touched;
    copies and pickles of the model keep the change. With flash attention, or where no two images have the
    same number of patches, the library's own code runs. ``eager`` attention holds the weights of all images
    of one size at once, ``(images, heads, patches, patches)``: for large images keep ``sdpa``, the default.

    Returns the number of attention modules changed: 0 for other models, and for those already changed.
    """
    modules = [m for m in model.modules() if type(m) in _BATCHED]
    for module in modules:
        module.__class__ = _BATCHED[type(module)]
    return len(modules)
