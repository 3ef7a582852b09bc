"""The text-to-image prompt (paper appendix A.4, in our own words)."""

from saber.images.protocol import looks

TEMPLATE = """\
Make one photorealistic 3D computer rendering in the manner of the CLEVR dataset: a plain, seamless \
neutral grey ground that fades into a neutral grey background, soft even studio light, soft contact \
shadows, a camera that looks slightly down on the scene.

The scene shows: {caption}

These are the only {n} things in the picture, and each is there exactly once:
{lines}

Layout: scatter the things over the ground at different depths, to the left and right, in front and \
behind. Leave a clear gap around each of them: nothing touches, overlaps, hides, supports or contains \
anything else, and everything lies fully inside the picture. Do not arrange them in a row, a column, a \
grid or a circle. Give them similar sizes in the picture, whatever their sizes in life, and let each keep \
the shape by which it is recognised.

Binding: an attribute belongs only to the thing on its own line, and covers that whole thing in place of \
its usual look. No colour, material, pattern, texture or visual effect is shared with, passes to, blends \
into or bleeds onto another thing, the ground or the background. A thing that glows lights nothing but \
itself; a thing that is transparent or reflecting does not take on the look of its neighbours. A thing \
shows no second attribute that stands on another line.

Nothing else: no further objects, people, scenery, pedestals, labels, letters, digits, logos, watermarks, \
frames or text of any kind."""


def prompt(item) -> str:
    """The prompt of one item: its generation-form caption, then each thing with its look on its own line."""
    lines = [f"{k}. {o}: {a}" for k, ((_, o), a) in enumerate(zip(item.pairs, looks(item), strict=True), 1)]
    return TEMPLATE.format(caption=item.generation_text, n=len(lines), lines="\n".join(lines))
