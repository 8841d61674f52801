"""Small pieces of HTML. Whatever is not already `Markup` is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from gsnmf.validation import Floats

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { display: inline-block; margin: .25rem; text-align: center; }
figcaption { font-size: .8rem; color: #555; }
"""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as HTML: escaped unless it is `Markup`.

    Examples
    --------
    >>> text("a < b")
    'a &lt; b'
    """
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def element(name: str, *contents: object, css_class: str = "") -> Markup:
    """One element around its contents."""
    attributes = f' class="{html.escape(css_class)}"' if css_class else ""
    return Markup(f"<{name}{attributes}>{''.join(map(text, contents))}</{name}>")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; cells that are floats are shown in percent."""
    head = element("tr", *(element("th", title) for title in header))
    return element("table", head, *(element("tr", *map(_cell, row)) for row in rows))


def picture(values: Floats, caption: str, *, pixel: int = 9, marked: bool = False) -> Markup:
    """A small matrix as an SVG picture, dark where it is large; in red if ``marked``."""
    top = float(values.max()) or 1.0
    size = (values.shape[1] * pixel, values.shape[0] * pixel)
    squares = []
    for (row, column), value in np.ndenumerate(np.clip(values / top, 0.0, 1.0)):
        level = round(255 * (1.0 - float(value)))
        red = max(level, 200) if marked else level
        squares.append(
            f'<rect x="{column * pixel}" y="{row * pixel}" width="{pixel}" height="{pixel}" '
            f'fill="rgb({red},{level},{level})"/>'
        )
    drawing = Markup(
        f'<svg role="img" width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" '
        f'style="border:1px solid #ccc"><title>{text(caption)}</title>{"".join(squares)}</svg>'
    )
    return element("figure", drawing, element("figcaption", caption))


def page(title: str, *sections: Markup) -> str:
    """A whole document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>{element('h1', title)}\n{chr(10).join(sections)}\n</body></html>\n"
    )


def _cell(value: object) -> Markup:
    if isinstance(value, float):
        return element("td", f"{100 * value:.1f} %", css_class="number")
    if isinstance(value, int):
        return element("td", value, css_class="number")
    return element("td", value)
