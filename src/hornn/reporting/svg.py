"""Pictures of lines, dots and words as SVG text."""

import re
from collections.abc import Iterable
from html import escape

SPACE = ' xmlns="http://www.w3.org/2000/svg"'
FONT = ' font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif"'
LETTER_WIDTH = 0.54  # of the font's size, on average


def element(tag: str, text: str = "", /, **attributes: float | str) -> str:
    """`element("line", x1=0, stroke_width=2)`; `text` is escaped, numbers are rounded to one decimal."""
    pairs = " ".join(f'{key.replace("_", "-")}="{written(value)}"' for key, value in attributes.items())
    return f"<{tag} {pairs}>{escape(text, quote=False)}</{tag}>" if text else f"<{tag} {pairs}/>"


def group(elements: Iterable[str], **attributes: float | str) -> str:
    """Elements that share attributes, as `element` takes them."""
    return f"{element('g', **attributes).removesuffix('/>')}>{''.join(elements)}</g>"


def written(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def shortened(text: str, width: float, size: float) -> str:
    """The text, cut off where it would be wider than `width` in a font of this size."""
    room = int(width / (LETTER_WIDTH * size))
    return text if len(text) <= room else text[: room - 2].rstrip(" ,") + "…"


def picture(name: str, width: float, height: float, elements: list[str], role: str = "img") -> str:
    """The whole picture in the ink of its page, with a name for those who do not see it.

    role: "group" for one that has links.
    """
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = f'<svg{SPACE} {size} role="{role}" aria-label="{escape(name)}"{FONT} fill="currentColor">'
    return "\n".join([head, *elements, "</svg>"]) + "\n"


class Looks:
    """The looks and marks of a page's pictures, each written once: a look as a class, a mark as a path to be used."""

    TAG = re.compile(r"<(?!svg)[a-z]+ [^>]*>")
    LOOK = re.compile(
        r' (fill|stroke|stroke-width|stroke-opacity|fill-opacity|stroke-dasharray|text-anchor|font-size)="([^"]*)"'
    )
    MARK = re.compile(r'<path d="([^"]*)" transform="translate\(([^ ]*) ([^)]*)\)"')

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.marks: dict[str, str] = {}  # path -> id

    def name(self, look: str) -> str:
        """The class of a look such as `fill:none;stroke:#0284c7`."""
        return self.names.setdefault(look, f"l{len(self.names)}")

    def inline(self, svg: str) -> str:
        """A picture within a page, without what it needs when it stands alone."""
        bare = svg.replace(SPACE, "", 1).replace(FONT, ' font-size="10"', 1)
        return self.TAG.sub(self.classed, self.MARK.sub(self.used, bare))

    def used(self, mark: re.Match[str]) -> str:
        path, x, y = mark.groups()
        return f'<use href="#{self.marks.setdefault(path, f"_{len(self.marks)}")}" x="{x}" y="{y}"'

    def classed(self, tag: re.Match[str]) -> str:
        """An element with one class in place of its looks; a length of CSS needs its unit."""
        looks = self.LOOK.findall(tag[0])
        if not looks:
            return tag[0]
        rule = ";".join(f"{key}:{value}{'px' * (key == 'font-size')}" for key, value in looks)
        head, rest = self.LOOK.sub("", tag[0]).split(" ", 1)
        return f'{head} class="{self.name(rule)}" {rest}'

    def rules(self) -> str:
        return "".join(f".{name}{{{look}}}\n" for look, name in self.names.items())
