"""The few SVG elements of which charts consist, as text. This module knows nothing about charts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escape_html

from p4native.common.printable import printable

FONT = "font-family='system-ui, sans-serif'"


def escape(text: str) -> str:
    """Returns text that may stand between tags. Control characters, which XML does not allow, are
    replaced as well."""
    return escape_html(printable(text), quote=False)


class Canvas:
    """An SVG document. Elements are appended in drawing order; coordinates are pixels from the top
    left."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width = width
        self.height = height
        self._elements = [f"<title>{escape(title)}</title>"]

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, dash: str = "") -> None:
        dashes = f" stroke-dasharray='{dash}'" if dash else ""
        self._elements.append(
            f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' "
            f"stroke='{colour}'{dashes}/>"
        )

    def rectangle(
        self, x: float, y: float, width: float, height: float, colour: str, hint: str = ""
    ) -> None:
        inner = f"<title>{escape(hint)}</title>" if hint else ""
        self._elements.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' "
            f"fill='{colour}'>{inner}</rect>"
        )

    def polyline(
        self,
        points: Iterable[tuple[float, float]],
        colour: str,
        dash: str = "",
        thick: float = 1.5,
    ) -> None:
        dashes = f" stroke-dasharray='{dash}'" if dash else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(
            f"<polyline points='{path}' fill='none' stroke='{colour}' "
            f"stroke-width='{thick:.2g}'{dashes}/>"
        )

    def polygon(
        self, points: Iterable[tuple[float, float]], colour: str, opacity: float = 1.0
    ) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(
            f"<polygon points='{path}' fill='{colour}' fill-opacity='{opacity}'/>"
        )

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", size: int = 12, turn: int = 0
    ) -> None:
        """Adds text. anchor: start, middle or end. turn: degrees clockwise around (x, y)."""
        turned = f" transform='rotate({turn} {x:.1f} {y:.1f})'" if turn else ""
        self._elements.append(
            f"<text x='{x:.1f}' y='{y:.1f}' text-anchor=\"{anchor}\" font-size='{size}' "
            f"fill='#222'{turned}>{escape(text)}</text>"
        )

    def render(self) -> str:
        """Returns the whole document."""
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width} {self.height}' "
            f"width='{self.width}' height='{self.height}' {FONT} role='img'>"
        )
        ground = f"<rect width='{self.width}' height='{self.height}' fill='white'/>"
        return "\n".join([head, ground, *self._elements, "</svg>", ""])
