"""Finds the scripts of Vega (BSD license), which draw charts in a page, and writes charts as files
by vl-convert-python, which contains Vega. A run needs neither: its charts are data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agglab.testbed.base.command_lines import extra
from agglab.testbed.base.errors import MachineLacks
from p4native.common.c_build import cache_folder
from p4native.common.whole_files import whole_file

if TYPE_CHECKING:
    from agglab.testbed.report.specification import Spec

PACKAGE, MODULE = "vl-convert-python", "vl_convert"
SCRIPT = "charts.js"
"""The name of the scripts' file in a result folder. All pages of a folder share it."""
LACK = f"{PACKAGE}, which writes charts as files,"
EXTRA = "charts"
"""The name of the optional dependency in pyproject.toml."""
PNG_SCALE = 3
"""How many pixels of a PNG file a pixel of the specification becomes."""
LICENSE = (
    "/* Vega, Vega-Lite, Vega-Embed: Copyright University of Washington Interactive Data Lab and "
    "contributors; D3 modules: Copyright Mike Bostock; lodash.debounce: Copyright OpenJS "
    "Foundation and contributors. BSD-3-Clause, ISC and MIT licenses. */\n"
)


def script() -> Path | None:
    """Returns the path of the scripts in the cache, where they are written first if that is
    necessary, which takes two seconds. Returns None if vl-convert-python is not installed."""
    installed = find_spec(MODULE)
    if installed is None or installed.origin is None:
        return None
    path = cache_folder() / f"charts-{os.stat(installed.origin).st_mtime_ns}.js"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = LICENSE + _library().javascript_bundle()
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    return path


def place(folder: Path) -> None:
    """Puts the scripts into a result folder, if there are any. The file is a link to the one in the
    cache where the file system can do that, so that a thousand results do not need a gigabyte."""
    with suppress(OSError):  # without the scripts, the pages say what is missing
        source = script()
        if source is None:
            return
        target = folder / SCRIPT
        target.unlink(missing_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)


def is_installed() -> bool:
    """Returns whether charts can be written as files here."""
    return find_spec(MODULE) is not None


def check() -> None:
    """Raises MachineLacks if charts cannot be written as files here."""
    if not is_installed():
        raise MachineLacks(LACK, extra(EXTRA))


def converted(spec: Spec, form: str) -> bytes:
    """Returns a chart as a file of a format: svg, pdf or png. Nothing that a specification names is
    read or fetched. Raises MachineLacks, or ValueError for a specification that Vega refuses."""
    check()
    return WRITERS[form](spec)


def add_fonts(folder: Path) -> None:
    """Lets files use the fonts in a folder, besides those of the system."""
    _library().register_font_directory(str(folder))


def _library() -> Any:
    import vl_convert  # takes memory, which a run without files does not need

    return vl_convert


def _svg(spec: Spec) -> bytes:
    return str(_library().vegalite_to_svg(spec, allowed_base_urls=[])).encode()


def _pdf(spec: Spec) -> bytes:
    return bytes(_library().vegalite_to_pdf(spec, allowed_base_urls=[]))


def _png(spec: Spec) -> bytes:
    return bytes(_library().vegalite_to_png(spec, scale=PNG_SCALE, allowed_base_urls=[]))


WRITERS: Mapping[str, Callable[[dict[str, Any]], bytes]] = {"svg": _svg, "pdf": _pdf, "png": _png}
