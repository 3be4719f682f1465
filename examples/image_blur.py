"""A picture is drawn with arrays, blurred, and written as a PNG: before and after, side by side."""

from __future__ import annotations

import argparse
import struct
import zlib
from pathlib import Path

import numpy as np

import cyrt


def draw(size: int) -> cyrt.Array:
    """A picture of rings over a gradient: (size, size, 3), from 0 to 1."""
    y, x = cyrt.meshgrid(cyrt.linspace(-1, 1, size), cyrt.linspace(-1, 1, size), indexing="ij")
    rings = cyrt.astype(cyrt.sin(20 * cyrt.hypot(x, y)) > 0, "float32")
    return cyrt.stack([rings, (1 + x) / 2, (1 + y) / 2], axis=-1)


def weights_of(sigma: float) -> list[float]:
    """The weights of a Gaussian, of odd number and sum 1."""
    radius = max(1, round(3 * sigma))
    bell = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return (bell / bell.sum()).tolist()


def blur_rows(image: cyrt.Array, weights: list[float]) -> cyrt.Array:
    """Each row becomes the weighted sum of its neighbours: a view of the padded image for each."""
    radius, height = len(weights) // 2, image.shape[0]
    padded = cyrt.pad(image, ((radius, radius), (0, 0), (0, 0)), mode="edge")
    total = cyrt.zeros_like(image)
    for i, weight in enumerate(weights):
        total += weight * padded[i : i + height]
    return total


def blur(image: cyrt.Array, sigma: float) -> cyrt.Array:
    """A Gaussian blur: along the rows, then along the columns."""
    weights = weights_of(sigma)
    across = blur_rows(image, weights).swapaxes(0, 1)
    return blur_rows(across, weights).swapaxes(0, 1)


def write_png(path: Path, pixels: np.ndarray) -> None:
    """Write (height, width, 3) bytes as a PNG."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    lines = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: the line is not filtered
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128, help="pixels along each side")
    parser.add_argument("--sigma", type=float, default=2.0, help="the blur, in pixels")
    parser.add_argument("--output", type=Path, default=Path("blurred.png"))
    options = parser.parse_args()
    if options.size < 2:
        parser.error(f"--size: expected 2 or more, got {options.size}")
    if not options.sigma > 0:
        parser.error(f"--sigma: expected more than 0, got {options.sigma}")
    if not options.output.absolute().parent.is_dir():
        parser.error(f"--output: there is no folder {options.output.parent}")

    image = draw(options.size)
    blurred = blur(image, options.sigma)
    both = cyrt.concat([image, blurred], axis=1)
    pixels = cyrt.astype(cyrt.round(255 * cyrt.clip(both, 0, 1)), "uint8").numpy()
    write_png(options.output, pixels)

    before, after = (float(cyrt.abs(cyrt.diff(each, axis=0)).max()) for each in (image, blurred))
    print(f"{options.output}: {pixels.shape[1]} x {pixels.shape[0]} pixels")
    print(f"neighbouring rows differ by up to {before:.2f} before, and {after:.2f} after")
    if not after < before:
        raise SystemExit("the blur did not smooth the picture")


if __name__ == "__main__":
    main()
