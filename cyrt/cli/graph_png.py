"""SVG pictures as PNG, by cairosvg."""

from __future__ import annotations

PIXELS = 2  # for each of the SVG's, in both directions


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
    """Return the bytes of a PNG file; :func:`problem` is None."""
    import cairosvg

    image: bytes = cairosvg.svg2png(bytestring=svg.encode(), scale=PIXELS)
    return image
