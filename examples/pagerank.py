"""PageRank of a random web: each page hands its rank to those it links to, until none changes."""

from __future__ import annotations

import argparse

import numpy as np

import cyrt

DAMPING = 0.85
SHOWN = 5


def random_web(pages: int, links: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Links as (from, to): a few pages are linked to often, and every page has a link."""
    source = np.concatenate([np.arange(pages), rng.integers(0, pages, links - pages)])
    popular = rng.zipf(1.5, links) % pages
    return source.astype(np.int32), popular.astype(np.int32)


def pagerank(
    source: cyrt.Array, target: cyrt.Array, pages: int, tolerance: float, most: int
) -> tuple[cyrt.Array, int]:
    """The pages' ranks, of sum 1, and the number of rounds."""
    links_of = cyrt.bincount(source, minlength=pages)
    share = 1 / cyrt.astype(links_of, "float32")
    rank = cyrt.full(pages, 1 / pages)
    for done in range(1, most + 1):
        handed = (rank * share)[source]
        received = cyrt.bincount(target, weights=handed, minlength=pages)
        after = (1 - DAMPING) / pages + DAMPING * received
        change = cyrt.abs(after - rank).sum()
        rank = after
        # Asking for a value waits for it: only every tenth round does.
        if done % 10 == 0 and change.item() < tolerance:
            break
    return rank, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300, help="pages")
    parser.add_argument("--links", type=int, default=8, help="links a page")
    options = parser.parse_args()
    if options.size < SHOWN:
        parser.error(f"--size: expected {SHOWN} or more, got {options.size}")
    if options.links < 1:
        parser.error(f"--links: expected 1 or more, got {options.links}")

    pages = options.size
    source, target = random_web(pages, options.links * pages, np.random.default_rng(0))
    rank, rounds = pagerank(cyrt.asarray(source), cyrt.asarray(target), pages, 1e-4, 100)

    expected = np.full(pages, 1 / pages)
    share = 1 / np.bincount(source, minlength=pages)
    for _ in range(rounds):
        received = np.bincount(target, (expected * share)[source], pages)
        expected = (1 - DAMPING) / pages + DAMPING * received
    np.testing.assert_allclose(rank.numpy(), expected, rtol=1e-3)
    print(f"{pages} pages, {len(source)} links: {rounds} rounds; NumPy agrees")

    ranks, order = cyrt.top_k(rank, SHOWN)
    for page, value in zip(order.tolist(), ranks.tolist(), strict=True):
        print(f"page {page:4}: {100 * value:.2f} % of the rank")


if __name__ == "__main__":
    main()
