"""Gives a chart the size and the letters that a section `figure` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.base.problems import Where
from agglab.testbed.report.specification import HEIGHT, LETTERS, WIDTH, Spec, with_letters
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.figure import LENGTH
from agglab.testbed.schema.kinds import decimal

AXIS_WIDTH = 55
"""About the width of the labels of a y axis, in pixels."""


def styled(spec: Spec, section: Mapping[str, Any]) -> Spec:
    """Returns the specification with the section's size and font. section: its values as text."""
    size, font = section.get("size", {}), section.get("font", {})
    width, height = (_pixels(size[name]) if name in size else None for name in ("width", "height"))
    letters = decimal(font["size"]) if "size" in font else None
    whole = with_letters(spec, width or WIDTH, letters or LETTERS, font.get("family", ""))
    if "facet" in whole:
        return {**whole, "spec": {**whole["spec"], **_of_panel(whole, width, height)}}
    fit = {"autosize": {"type": "fit", "contains": "padding"}}
    sized = {"width": width or WIDTH, "height": height or HEIGHT, **fit}
    return {**whole, **sized} if width or height else whole


def _pixels(text: str) -> int:
    return round(LENGTH.read(Scalar(text, False, Where(""))))


def _of_panel(spec: Spec, width: float | None, height: float | None) -> Spec:
    """Returns the size of a panel, so that all together have about the figure's size."""
    columns = spec["columns"]
    rows = -(-spec["usermeta"]["panels"] // columns)
    size = {}
    if width:
        size["width"] = max(40, round((width - AXIS_WIDTH) / columns - 20))
    if height:
        size["height"] = max(40, round(height / rows - 60))
    return size
