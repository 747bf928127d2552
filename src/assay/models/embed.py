"""The seam to an embedder, and the endpoint that speaks `/v1/embeddings`. The bundled one is in `minilm.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Embedder(Protocol):
    """Texts to unit vectors (float32). `name` changes whenever the same text would get another vector."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def window(self) -> int:
        """How many tokens of a text are read; what comes after is ignored."""
        ...

    def tokens(self, text: str) -> int: ...

    async def passages(self, texts: Sequence[str]) -> np.ndarray: ...

    async def queries(self, texts: Sequence[str]) -> np.ndarray: ...
