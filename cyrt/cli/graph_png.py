"""SVG pictures as PNG, by cairosvg."""

from __future__ import annotations

from math import sqrt
from xml.etree import ElementTree

PIXELS = 2  # the picture's resolution, relative to the drawing's, up to the limits
MOST_PIXELS = 32_000_000
MOST_ALONG_A_SIDE = 32_000  # Cairo's limit is 32,767


def problem() -> str | None:
    """Return the line that says what to install, if PNG cannot be made."""
    try:
        import cairosvg  # noqa: F401
    except ImportError:
        return (
            "PNG needs cairosvg, which is not installed: pip install 'cyrt[graph]', or ask for .svg"
        )
    except OSError:
        return (
            "PNG needs Cairo's library: apt install libcairo2, or whatever the system calls it, "
            "or ask for .svg"
        )
    return None


def png(svg: str) -> bytes:
    """Return the bytes of a PNG file. It requires that :func:`problem` returns None.

    The SVG is scaled to a page, where one can zoom in; in the PNG everything must be legible.
    """
    import cairosvg

    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    fitting = min(sqrt(MOST_PIXELS / (width * height)), MOST_ALONG_A_SIDE / max(width, height))
    pixels = min(PIXELS, fitting)
    scale = pixels * width / float(root.attrib["width"])
    image: bytes = cairosvg.svg2png(bytestring=svg.encode(), scale=scale)
    return image
