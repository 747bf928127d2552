"""The bundled embedder on an NVIDIA GPU, where torch is installed: the weights of the CPU, and its vectors to 1e-3."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from assay.models.local.bert_graph import DIM, EPSILON, HEADS, Weights, depth, dequantised
from assay.models.local.openvino_runner import pad, plan_batches

Torch = Any  # the module
Tensor = Any

DEVICES = ("/dev/nvidiactl", "/dev/dxg")  # Linux, and Linux under Windows
TOKENS = 65_536  # of a batch at most: about one gigabyte of the GPU's memory
LEAST_TOKENS = 16_384  # fewer take the GPU as long


@functools.cache
def torch_on_gpu() -> Torch | None:
    """torch, if it is installed and finds an NVIDIA GPU. It takes seconds to import, so nothing does where there is no GPU."""
    if not any(Path(each).exists() for each in DEVICES) or find_spec("torch") is None:
        return None
    torch = import_module("torch")
    return torch if torch.cuda.is_available() else None


class TorchBert:
    """Unit vectors of 384 numbers, the mean of a text's tokens. Thread-safe."""

    def __init__(self, torch: Torch, weights: Weights, device: str, precision: str = "float16") -> None:
        self.torch, self.device = torch, device
        self.running = threading.Lock()  # two batches at once would need twice the memory
        half = getattr(torch, precision)

        def tensor(array: np.ndarray, kind: Any = half) -> Tensor:
            return torch.from_numpy(np.array(array)).to(device, kind)

        def both(*names: str) -> tuple[Tensor, Tensor]:
            matrices = [dequantised(weights, f"{name}.weight") for name in names]
            return tensor(np.concatenate(matrices)), tensor(np.concatenate([weights[f"{name}.bias"] for name in names]))

        def norm(name: str) -> tuple[Tensor, Tensor]:
            return tensor(weights[f"{name}.weight"], torch.float32), tensor(weights[f"{name}.bias"], torch.float32)

        self.half = half
        self.words = tensor(dequantised(weights, "embeddings.word"))
        self.positions = tensor(
            dequantised(weights, "embeddings.position") + weights["embeddings.type"][0], torch.float32
        )
        self.first = norm("embeddings.norm")
        self.layers = [
            (
                both(*(f"layers.{n}.{name}" for name in ("query", "key", "value"))),
                both(f"layers.{n}.mix"),
                norm(f"layers.{n}.mix.norm"),
                both(f"layers.{n}.up"),
                both(f"layers.{n}.down"),
                norm(f"layers.{n}.down.norm"),
            )
            for n in range(depth(weights))
        ]
        self.centre = tensor(weights["centre"], torch.float32)

    def embed(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """The vectors of rows of token ids, in their order. The GPU works while the next batch is put together."""
        torch = self.torch
        with self.running, torch.inference_mode():
            vectors = torch.empty((len(rows), DIM), device=self.device)
            for places in plan_batches([len(row) for row in rows], most=TOKENS, least=LEAST_TOKENS):
                ids, mask = (torch.from_numpy(each).to(self.device) for each in pad([rows[place] for place in places]))
                vectors[torch.tensor(places, device=self.device)] = self._means(ids, mask)
            return vectors.cpu().numpy()

    def _means(self, ids: Tensor, mask: Tensor) -> Tensor:
        run = self.torch.nn.functional
        texts, length = ids.shape
        shown = mask.bool()[:, None, None, :]

        def normed(x: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
            return run.layer_norm(x.float(), (DIM,), *norm, EPSILON)

        x = normed(run.embedding(ids, self.words).float() + self.positions[:length], self.first)
        for attention, mix, mix_norm, up, down, down_norm in self.layers:
            heads = run.linear(x.to(self.half), *attention).view(texts, length, 3, HEADS, DIM // HEADS)
            seen = run.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4), attn_mask=shown)
            x = normed(run.linear(seen.transpose(1, 2).reshape(texts, length, DIM), *mix) + x, mix_norm)
            wide = run.gelu(run.linear(x.to(self.half), *up))
            x = normed(run.linear(wide, *down) + x, down_norm)
        return run.normalize(run.normalize((x * mask[..., None]).sum(1)) - self.centre)
