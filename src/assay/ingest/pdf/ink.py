"""Finds what is drawn on a picture of a page besides its words. Pure: grey values and boxes in, boxes out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.ingest.pdf.c_functions import Box

CONTRAST = 30  # of 255, between pixels beside each other: more than noise, and whatever the light
TILE = 4  # pixels
LEAST_TILES = 9  # of a drawing: less is a speck


def find_ink(grey: np.ndarray, words: Sequence[Box]) -> list[Box]:
    """The boxes of what is drawn, in pixels. Words are blotted out first, as high as their lines."""
    values = grey.astype(np.int16)
    edges = np.zeros(values.shape, dtype=bool)
    edges[:, 1:] = np.abs(np.diff(values, axis=1)) > CONTRAST
    edges[1:] |= np.abs(np.diff(values, axis=0)) > CONTRAST
    for x0, y0, x1, y1 in words:
        off = 0.4 * (y1 - y0)
        edges[max(int(y0 - off), 0) : int(y1 + off) + 1, max(int(x0 - off), 0) : int(x1 + off) + 1] = False
    down, across = (size // TILE for size in edges.shape)
    tiles = edges[: down * TILE, : across * TILE].reshape(down, TILE, across, TILE).sum(axis=(1, 3)) > 1
    return [box for box in _joined({(x, y) for y, x in np.argwhere(tiles).tolist()}) if not _is_border(box, grey.shape)]


def _joined(tiles: set[tuple[int, int]]) -> list[Box]:
    """The boxes around tiles that touch, or have one tile between them."""
    found: list[Box] = []
    while tiles:
        group = [tiles.pop()]
        for x, y in group:
            near = {(x + right, y + below) for right in range(-2, 3) for below in range(-2, 3)} & tiles
            tiles -= near
            group += near
        if len(group) >= LEAST_TILES:
            xs, ys = zip(*group, strict=True)
            found.append((TILE * min(xs), TILE * min(ys), TILE * (max(xs) + 1), TILE * (max(ys) + 1)))
    return found


def _is_border(box: Box, shape: tuple[int, ...]) -> bool:
    """Whether this is the shadow at an edge of the paper, or around it."""
    x0, y0, x1, y1 = box
    high, wide = shape[:2]
    near = 2 * TILE
    sides = [x0 < near, y0 < near, x1 > wide - near, y1 > high - near]
    return sum(sides) > 2 or (any(sides) and min(x1 - x0, y1 - y0) < 6 * TILE)
