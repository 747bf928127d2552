"""Writes the bundled embedder as a folder that sentence-transformers loads: the reference of the other benches.

    peers/bin/python bench/reference_model.py FOLDER

Needs torch, transformers and sentence-transformers. The weights are the bundled ones in float32: one model for both.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from assay.models.local import bundled

VOCABULARY = Path(bundled.__file__).with_name("bert-uncased-vocab.txt")
EMBEDDINGS = {
    "embeddings.word": "embeddings.word_embeddings.weight",
    "embeddings.position": "embeddings.position_embeddings.weight",
    "embeddings.type": "embeddings.token_type_embeddings.weight",
    "embeddings.norm.weight": "embeddings.LayerNorm.weight",
    "embeddings.norm.bias": "embeddings.LayerNorm.bias",
}
LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "mix.norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "down.norm": "output.LayerNorm",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


def write(folder: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizer

    weights = bundled.gte_small_weights()
    state = {name: torch.from_numpy(value.copy()) for name, value in named(weights).items()}
    config = BertConfig(
        hidden_size=384, num_hidden_layers=layers(weights), num_attention_heads=12, intermediate_size=1536
    )
    bert = BertModel(config, add_pooling_layer=False)
    missing, unknown = bert.load_state_dict(state, strict=False)
    if unknown or any("position_ids" not in name for name in missing):
        raise SystemExit(f"the weights do not fit: missing {missing}, unknown {unknown}")
    inner = folder / "bert"
    bert.save_pretrained(inner)
    BertTokenizer(str(VOCABULARY), do_lower_case=True).save_pretrained(inner)
    transformer = models.Transformer(str(inner), max_seq_length=bundled.MOST_TOKENS)
    SentenceTransformer(modules=[transformer, models.Pooling(384, "mean"), models.Normalize()]).save(str(folder))


def layers(weights: Any) -> int:
    return 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))


def named(weights: Any) -> dict[str, np.ndarray]:
    """The weights under the names of transformers."""
    own = dict(EMBEDDINGS)
    for layer in range(layers(weights)):
        for part, theirs in LAYER.items():
            for kind in ("weight", "bias"):
                own[f"layers.{layer}.{part}.{kind}"] = f"encoder.layer.{layer}.{theirs}.{kind}"
    return {theirs: floats(weights, name) for name, theirs in own.items()}


def floats(weights: Any, name: str) -> np.ndarray:
    scale = weights.get(f"{name}.scale")
    value = np.asarray(weights[name], np.float32)
    return value if scale is None else value * np.asarray(scale)[:, None]


if __name__ == "__main__":
    main()
