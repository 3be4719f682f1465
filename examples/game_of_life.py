"""Conway's game of life with arrays: a glider crosses a torus, and pictures of it are printed."""

from __future__ import annotations

import argparse

import numpy as np

import cyrt

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]


def next_generation(world: cyrt.Array) -> cyrt.Array:
    """The world one step later. Its edges are joined, left to right and top to bottom."""
    rows = world + cyrt.roll(world, 1, axis=0) + cyrt.roll(world, -1, axis=0)
    block = rows + cyrt.roll(rows, 1, axis=1) + cyrt.roll(rows, -1, axis=1)
    # A cell lives with three in its block of nine, or with four if it is one of them.
    return cyrt.astype((block == 3) | ((block == 4) & (world == 1)), "uint8")


def picture(world: cyrt.Array) -> str:
    """The world as text, one character a cell."""
    return "\n".join("".join("#" if cell else "." for cell in row) for row in world.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=12, help="cells along each side")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--pictures", type=int, default=4, help="how many are printed")
    options = parser.parse_args()
    if options.size < 8:
        parser.error(f"--size: a glider needs a world of 8 or more, got {options.size}")

    world = cyrt.zeros((options.size, options.size), dtype="uint8")
    world[:3, :3] = cyrt.asarray(GLIDER, dtype="uint8")
    start = world.numpy()
    every = max(1, options.steps // max(1, options.pictures - 1))
    for step in range(options.steps + 1):
        if step % every == 0:
            print(f"step {step}\n{picture(world)}\n")
        if step < options.steps:
            world = next_generation(world)

    # After 4 steps a glider is itself again, one cell further down and to the right.
    for _ in range(-options.steps % 4):
        world = next_generation(world)
    moved = -(-options.steps // 4)
    np.testing.assert_array_equal(world.numpy(), np.roll(start, (moved, moved), (0, 1)))
    print(f"after {4 * moved} steps the glider is {moved} cells further down and to the right")


if __name__ == "__main__":
    main()
