"""From the generation form of an attribute to its texture: ``texture("white and orange striped", 64, rng)``.

``parse`` reads a form through the vocabulary's own table, so exactly the 521 appearances that the vocabulary
can produce are known. ``LOOKS`` says for every attribute which painter draws it, with which colors, and which
finish of ``shading`` puts light on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from saber.images import fabrics, materials, patterns
from saber.images.plane import average_down, darker, hexcolor, lighter, look_up, make_plane, ramp
from saber.vocabulary import appearances, load_attributes

_H = hexcolor


@dataclass(frozen=True)
class Look:
    """How one attribute is drawn.

    finish: key of ``shading.FINISHES``. paint: painter ``(plane, *colors) -> (n, n, 3)`` or, with color
    slots, ``plane -> (n, n)``. colors: fixed colors of a standalone attribute; {first word of the form:
    colors} of a fixed-variant one. tones: with color slots, makes the ramp from the painter's tone to color.
    """

    finish: str
    paint: Callable
    colors: tuple | dict = ()
    tones: Callable | None = None


@dataclass(frozen=True)
class Appearance:
    """A parsed generation form.

    key: names the drawing; the attribute where colors are slots, else the form. colors: given to the painter.
    lookup: (256, 3) from the tone, 0 to 255, to RGB in 0..1 where colors are slots, else None.
    """

    form: str
    attribute: str
    key: str
    finish: str
    paint: Callable
    colors: tuple
    lookup: np.ndarray | None


def _two(one, two):
    return [(0, one), (1, two)]


def _yarn(color):
    return [(0, darker(color, 0.72)), (0.45, color), (1, lighter(color, 0.56 - 0.2 * float(color.mean())))]


def _hair(color):
    return [(0, darker(color, 0.62)), (0.5, color), (1, lighter(color, 0.55))]


def _sequin(color):
    return [
        (0, darker(color, 0.75)),
        (0.1, darker(color, 0.55)),
        (0.4, color),
        (0.78, lighter(color, 0.5)),
        (0.97, _WHITE),
    ]


def _plain(color):
    return [(0, color), (1, color)]


_WHITE = np.ones(3, np.float32)
LOOKS = {
    "brown": Look("matte", patterns.flat, (_H("6e4022"),)),
    "turquoise": Look("matte", patterns.flat, (_H("2fd0c4"),)),
    "golden": Look("gold", patterns.flat, (_H("e0a526"),)),
    "silver": Look("silver", patterns.flat, (_H("c3c9d2"),)),
    "copper": Look("copper", patterns.flat, (_H("c8693a"),)),
    "soap-bubble": Look("bubble", materials.soap_bubble),
    "sandy": Look("crumbly", materials.sandy),
    "cardboard": Look("textured", materials.cardboard),
    "icy": Look("ice", materials.icy),
    "molten": Look("ember", materials.molten),
    "leafy": Look("textured", materials.leafy),
    "newspaper": Look("textured", materials.newspaper),
    "furry": Look("fur", fabrics.furry, tones=_hair),
    "knitted": Look("textured", fabrics.knitted, tones=_yarn),
    "sequined": Look("textured", fabrics.sequined, tones=_sequin),
    "wooden": Look(
        "textured", materials.wooden, {"light-brown": (_H("dcae74"),), "dark-brown": (_H("7a4a26"),)}
    ),
    "marble": Look(
        "gloss",
        materials.marble,
        {"white": (_H("f3f1ec"), _H("474c5a")), "black": (_H("1d1d21"), _H("d9d4c8"))},
    ),
    "brick": Look(
        "textured",
        materials.brick,
        {"red": (_H("b1442e"), _H("d9d0c0")), "yellow": (_H("e0b04a"), _H("f6efdd"))},
    ),
    "denim": Look("textured", fabrics.denim, {"light-blue": (_H("7fa8d2"),), "dark-blue": (_H("2f4a82"),)}),
    "leather": Look("gloss", fabrics.leather, {"tan": (_H("b9773f"),), "burgundy": (_H("7c1c2c"),)}),
    "chocolate": Look("gloss", materials.chocolate, {"milk": (_H("6b3c20"),), "white": (_H("f1e2b8"),)}),
    "crystal": Look("gloss", materials.crystal, {"violet": (_H("9a4fe0"),), "emerald": (_H("16a56a"),)}),
    "wicker": Look(
        "textured", fabrics.wicker, {"light-brown": (_H("cf9d5c"),), "mint-green": (_H("9fdcb4"),)}
    ),
    "scaly": Look("gloss", materials.scaly, {"green": (_H("3f9d3c"),), "blue": (_H("2a6fc9"),)}),
    "striped": Look("textured", patterns.striped, tones=_two),
    "polka-dot": Look("textured", patterns.polka_dot, tones=_two),
    "checkered": Look("textured", patterns.checkered, tones=_two),
    "zigzag": Look("textured", patterns.zigzag, tones=_two),
    "two-tone": Look("matte", patterns.two_tone, tones=_two),
    "ombre": Look("matte", patterns.ombre, tones=_two),
    "camouflage": Look("textured", patterns.camouflage),
    "tie-dye": Look("textured", patterns.tie_dye),
    "zebra-print": Look("textured", patterns.zebra),
    "leopard-print": Look("textured", patterns.leopard),
    "rainbow": Look("textured", patterns.rainbow),
    "plaid": Look(
        "textured",
        patterns.plaid,
        {
            "red": (_H("d0202a"), _H("14141c"), _H("ffe36a")),
            "green": (_H("1f8a46"), _H("101c4a"), _H("f2f2ea")),
        },
    ),
    "floral": Look("textured", patterns.floral, {"pink": (_H("f0609c"),), "blue": (_H("4a7be0"),)}),
    "starry": Look(
        "textured",
        patterns.starry,
        {"midnight-blue": (_H("0c1440"), _H("2c56b8")), "purple": (_H("260a4c"), _H("a83cc0"))},
    ),
    "cow-print": Look("textured", patterns.cow_print, {"black": (_H("1a1a1c"),), "brown": (_H("7a4522"),)}),
    "glowing": Look("glow", patterns.even, tones=_plain),
    "transparent": Look("glass", patterns.flat, (_H("dff1f7"),)),
}


@lru_cache(maxsize=1)
def known_appearances() -> dict[str, Appearance]:
    """Every appearance of the vocabulary, ``{generation form: Appearance}``, in the vocabulary's order."""
    attributes, palette = load_attributes()
    rgb = {name: np.array(value, np.float32) / 255 for name, value in palette.items()}
    table = {}
    for attribute in attributes:
        basic = attribute.name in rgb
        look = Look("matte", patterns.flat, (rgb[attribute.name],)) if basic else LOOKS[attribute.name]
        for form in appearances(attribute, tuple(palette)):
            key, colors, lookup = form, look.colors, None
            if attribute.type == "fixed-variant":
                colors = look.colors[form.split()[0]]
            elif attribute.type != "standalone":
                filled = [rgb[word] for word in form.split() if word in rgb]
                key, lookup = attribute.name, ramp(np.linspace(0, 1, 256), look.tones(*filled))
            table[form] = Appearance(form, attribute.name, key, look.finish, look.paint, colors, lookup)
    return table


def parse(appearance: str) -> Appearance:
    """The appearance of that generation form; ValueError with near forms when the vocabulary has none."""
    table = known_appearances()
    if appearance not in table:
        near = get_close_matches(str(appearance), table, n=3, cutoff=0.4)
        raise ValueError(
            f"unknown appearance {appearance!r}: not a generation form of the vocabulary"
            + (f"; did you mean {', '.join(repr(n) for n in near)}?" if near else "")
        )
    return table[appearance]


def draw(look: Appearance, size: int, rng: np.random.Generator, margin: int = 0) -> np.ndarray:
    """The painter's drawing, uint8: tones (n, n) with color slots, else RGB planes (3, n, n).

    n = size + 2 margin: the drawing goes on for ``margin`` pixels around the square that it is made for.
    """
    if size < 8:
        raise ValueError(f"a texture needs at least 8 pixels a side, not {size}")
    drawn = np.asarray(look.paint(make_plane(size, rng, margin), *look.colors), np.float32)
    small = average_down(np.clip(drawn, 0, 1).reshape(*drawn.shape[:2], -1))
    planes = np.ascontiguousarray(np.moveaxis((small * 255 + 0.5).astype(np.uint8), -1, 0))
    return planes if look.lookup is None else planes[0]


def color(look: Appearance, drawing: np.ndarray) -> np.ndarray:
    """A drawing in the colors of the appearance: float32 planes (3, size, size), RGB in 0..1."""
    if look.lookup is None:
        return drawing * np.float32(1 / 255)
    return look_up(look.lookup, drawing)


def texture(appearance: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Flat texture of an appearance: float32 (size, size, 3), RGB in 0..1.

    The look depends on the appearance; ``rng`` only moves phases and spots. Raises ValueError for a form that
    the vocabulary does not have, or a size below 8.
    """
    look = parse(appearance)
    return np.moveaxis(color(look, draw(look, size, rng)), 0, -1)
