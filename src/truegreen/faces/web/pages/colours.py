"""The colours of the pages: every status and light on a light and on a dark ground.

They are made from the palette of the model, moved towards ink until text on them can be read. What
a colour means is the model's to say; a glyph and a word stand beside it always.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegreen.faces.axes import LIGHTS, Rgb
from truegreen.model import PALETTE
from truegreen.tuples import NamedTuple

READABLE = 4.5
"""The contrast that WCAG asks of text (AA); graphics need less."""
VISIBLE = 3.0
_STEPS = 50
_CHANNEL, _DARK_CHANNEL = 255, 0.04045


class Theme(NamedTuple):
    """A ground, what lies on it, and the inks that are read on both."""

    name: str
    ground: Rgb
    surface: Rgb
    raised: Rgb
    ink: Rgb
    soft: Rgb
    line: Rgb
    accent: Rgb
    towards: Rgb
    """Whither a colour moves until it can be read."""
    tinted: float
    """How much of a colour is in its tint."""
    pale: float
    """How much of it is in what is drawn pale: more on a dark ground, where it is lost sooner."""


LIGHT = Theme(
    name="light",
    ground=(245, 246, 249),
    surface=(255, 255, 255),
    raised=(238, 240, 245),
    ink=(22, 26, 35),
    soft=(84, 93, 109),
    line=(222, 226, 234),
    accent=(54, 75, 200),
    towards=(0, 0, 0),
    tinted=0.10,
    pale=0.45,
)
DARK = Theme(
    name="dark",
    ground=(13, 16, 22),
    surface=(21, 25, 33),
    raised=(32, 38, 49),
    ink=(232, 235, 242),
    soft=(160, 169, 186),
    line=(43, 50, 63),
    accent=(146, 163, 255),
    towards=(255, 255, 255),
    tinted=0.16,
    pale=0.6,
)
THEMES = (LIGHT, DARK)


class Shade(NamedTuple):
    """One colour in one theme: for text, behind text, around it, and for what is drawn."""

    ink: Rgb
    tint: Rgb
    edge: Rgb
    fill: Rgb
    pale: Rgb
    """For what is drawn beside the same colour, and is something else."""


def tones() -> dict[str, Rgb]:
    """Every colour by the name of its class: `t-` for tasks, `l-` for lights."""
    tasks = {f"t-{status}": look.rgb for status, look in PALETTE.items()}
    return {**tasks, **{f"l-{light}": rgb for light, (_, rgb) in LIGHTS.items()}}


def shade(rgb: Rgb, theme: Theme) -> Shade:
    """A colour that can be read and seen in a theme."""
    tint = _mixed(rgb, theme.surface, theme.tinted)
    fill = _moved(rgb, theme, (theme.surface,), VISIBLE)
    return Shade(
        ink=_moved(rgb, theme, (tint, theme.surface, theme.ground, theme.raised), READABLE),
        tint=tint,
        edge=_mixed(rgb, theme.surface, 3.2 * theme.tinted),
        fill=fill,
        pale=_mixed(fill, theme.surface, theme.pale),
    )


def contrast(one: Rgb, other: Rgb) -> float:
    """How well one colour can be read on another, from 1 to 21."""
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(rgb: Rgb) -> float:
    red, green, blue = (_linear(value / _CHANNEL) for value in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    low: float = value / 12.92
    return low if value <= _DARK_CHANNEL else ((value + 0.055) / 1.055) ** 2.4


def _mixed(rgb: Rgb, other: Rgb, share: float) -> Rgb:
    red, green, blue = (
        round(mine * share + theirs * (1 - share)) for mine, theirs in zip(rgb, other, strict=True)
    )
    return red, green, blue


def _moved(rgb: Rgb, theme: Theme, grounds: tuple[Rgb, ...], enough: float) -> Rgb:
    """The nearest colour on the way to ink that can be told from every ground."""
    way = (_mixed(theme.towards, rgb, step / _STEPS) for step in range(_STEPS + 1))
    return next(c for c in way if all(contrast(c, ground) >= enough for ground in grounds))


def sheet() -> str:
    """The variables and classes that the pages' own sheet uses."""
    light, dark = (";".join(_variables(theme)) for theme in THEMES)
    parts = [
        f":root{{color-scheme:light;{light}}}",
        f"@media (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}",
        f":root[data-theme=light]{{color-scheme:light;{light}}}",
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}",
        *(_tone(name) for name in tones()),
    ]
    return "\n".join(parts) + "\n"


def _variables(theme: Theme) -> Iterator[str]:
    for name in ("ground", "surface", "raised", "ink", "soft", "line", "accent"):
        yield f"--{name}:{_css(getattr(theme, name))}"
    for name, rgb in tones().items():
        for part, colour in shade(rgb, theme)._asdict().items():
            yield f"--{name}-{part}:{_css(colour)}"


def _tone(name: str) -> str:
    parts = ";".join(f"--tone-{part}:var(--{name}-{part})" for part in Shade._fields)
    return f".{name}{{{parts}}}"


def _css(rgb: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
