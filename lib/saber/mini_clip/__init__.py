"""``mini-clip``: a small open_clip dual encoder trained here on sprite scenes, the CLIP-type row of ``demo``.

``python -m saber.mini_clip train`` makes the shipped folder ``saber/embedders/mini-clip`` again.
"""
