"""The miniature: a Qwen3-VL embedder of a few million parameters that shows the paper's effect.

`language` makes its texts, `saber.training_scenes` its images, `architecture` the model and its folder,
`network` embeds batches fast, `stages` holds the losses and `train` the run.
"""
