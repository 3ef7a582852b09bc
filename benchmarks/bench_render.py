"""Images per second and core of the sprite renderer, and its ratio to a plain PIL version that keeps nothing.

Run: ``python benchmarks/bench_render.py [--images 200] [--objects 6]``. Processor time of one core.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time

import numpy as np
from PIL import Image, ImageChops, ImageFilter

from saber.images.cutout import cutout, sprite_file
from saber.images.layout import place
from saber.images.render import render_scene
from saber.images.textures import texture
from saber.vocabulary import instantiate, load_vocabulary


def plain(objects, appearances, seed, size):
    """The obvious way: open, resize, texture, multiply, blur and paste every object of every image."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), (146, 146, 146))
    centers, diameters = place(len(objects), size, rng)
    for name, form, center, d in zip(objects, appearances, centers, diameters, strict=True):
        d = int(d)
        with Image.open(sprite_file(name)) as sprite:
            light, alpha = sprite.resize((d, d), Image.Resampling.LANCZOS).split()
        tile = Image.fromarray((texture(form, d, rng) * 255).astype(np.uint8))
        body = ImageChops.multiply(tile, Image.merge("RGB", [light.point(lambda v: 110 + 0.57 * v)] * 3))
        corner = tuple(int(v - d / 2) for v in center)
        shadow = alpha.filter(ImageFilter.GaussianBlur(d / 20)).point(lambda v: v * 0.5)
        image.paste((20, 20, 20), (corner[0] + 3, corner[1] + 5), shadow)
        image.paste(body, corner, alpha)
    return np.asarray(image)


def speed(draw, scenes, size):
    """Images per second of processor time."""
    start = time.process_time()
    for k, (objects, forms) in enumerate(scenes):
        draw(objects, forms, [1, k], size=size)
    return len(scenes) / (time.process_time() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--objects", type=int, default=6)
    arguments = parser.parse_args()
    vocabulary = load_vocabulary()
    rng = np.random.default_rng(0)

    def scenes():
        names = [o.name for o in vocabulary.objects]
        for _ in range(arguments.images):
            attributes = rng.permutation(len(vocabulary.attributes))[: arguments.objects]
            forms = [instantiate(vocabulary.attributes[i], vocabulary.palette, rng) for i in attributes]
            yield [names[i] for i in rng.permutation(len(names))[: arguments.objects]], forms

    print(f"{arguments.objects} objects, {arguments.images} images, images/s/core")
    print("size    plain     cold     warm   warm/plain")
    for size in (128, 192, 256):
        first, second = list(scenes()), list(scenes())
        slow = speed(plain, first[:40], size)
        cutout.cache_clear()
        cold, warm = speed(render_scene, first, size), speed(render_scene, second, size)
        print(f"{size:4d} {slow:8.0f} {cold:8.0f} {warm:8.0f} {warm / slow:10.1f}")


if __name__ == "__main__":
    main()
