"""Images of the benchmark's items: one small protocol, three backends, one function that builds them all."""

import inspect
from importlib import import_module

from saber.images.build import BuildReport, ImagesIncomplete, build_images
from saber.images.protocol import BackendUnusable, ImageBackend, Refused

__all__ = [
    "BACKENDS",
    "BackendUnusable",
    "BuildReport",
    "ImageBackend",
    "ImagesIncomplete",
    "Refused",
    "build_images",
    "make_backend",
]

BACKENDS = {
    "sprites": ("saber.images.sprites_backend", "SpritesBackend"),
    "openai": ("saber.images.openai_backend", "OpenAIBackend"),
    "folder": ("saber.images.folder_backend", "FolderBackend"),
}


def make_backend(name: str, **options) -> ImageBackend:
    """The image backend of this name, with its options.

    ``sprites`` takes none; ``folder`` takes ``folder``; the options of ``openai`` are the fields of
    :class:`saber.images.openai_backend.OpenAIBackend`.

    Raises:
        ValueError: unknown name or option, missing option; the message names the valid ones.
    """
    if name not in BACKENDS:
        raise ValueError(f"unknown image backend {name!r}: choose one of {', '.join(BACKENDS)}")
    module, attribute = BACKENDS[name]
    backend = getattr(import_module(module), attribute)
    parameters = inspect.signature(backend).parameters
    unknown = sorted(set(options) - set(parameters))
    missing = [p for p, v in parameters.items() if v.default is v.empty and p not in options]
    if unknown or missing:
        words = [f"does not know {', '.join(unknown)}"] * bool(unknown) + [
            f"needs {', '.join(missing)}"
        ] * bool(missing)
        raise ValueError(
            f"image backend {name!r} {' and '.join(words)}; "
            f"its options are: {', '.join(parameters) or 'none'}"
        )
    return backend(**options)
