"""SABER with its images, as a profile asks for it: what every notebook that scores models begins with."""

from collections.abc import Mapping, Sequence

from saber.images import build_images, make_backend
from saber.images.layout import MOST_OBJECTS
from saber.images.render import SMALLEST
from saber.items import Benchmark
from saber.machine import cores
from saber.paths import REPO, saber_dir
from saber.source import open_saber
from saber.validate import SCORING, check_benchmark


def prepare_saber(
    profile: str,
    *,
    saber_source: str,
    saber_path: str,
    saber_seed: int,
    saber_vocabulary: str,
    saber_questions_per_count: int,
    saber_object_counts: Sequence[int],
    image_backend: str,
    image_size: int,
    image_options: Mapping[str, object],
) -> Benchmark:
    """The benchmark in ``outputs/<profile>/data/saber`` with an image for every item.

    The arguments are the notebooks' parameters. What is there already is loaded, what is missing or was made
    from other parameters is made. Images of a benchmark that came with its own (``saber_source`` folder or
    hub) are left as they are, and such a benchmark must keep the rules on which the scoring rests. A relative
    ``saber_path`` of a folder starts at the repository, wherever the notebook runs.
    ``image_options`` are those of the image backend, such as ``{"max_cost": 500}`` or ``{"folder": ...}``.

    Raises ValueError, FileNotFoundError or ConnectionError from :func:`saber.source.open_saber`, and
    :class:`saber.images.ImagesIncomplete` when some image could not be made.
    """
    if saber_source == "build":  # before anything is written
        backend = make_backend(image_backend, **image_options)
        if image_backend == "sprites" and (image_size < SMALLEST or max(saber_object_counts) > MOST_OBJECTS):
            raise ValueError(
                f"sprites need an image_size of at least {SMALLEST} and at most {MOST_OBJECTS} objects, not "
                f"image_size {image_size} and saber_object_counts {list(saber_object_counts)}"
            )
    path = saber_path or None
    benchmark = open_saber(
        saber_source,
        folder=saber_dir(profile),
        path=REPO / path if path and saber_source == "folder" else path,
        vocabulary=saber_vocabulary,
        seed=saber_seed,
        questions_per_count=saber_questions_per_count,
        object_counts=saber_object_counts,
    )
    if saber_source == "build":
        build_images(benchmark, backend, image_size, workers=cores())
    else:
        check_benchmark(benchmark, SCORING)
    return benchmark
