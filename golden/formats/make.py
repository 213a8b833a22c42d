"""Writes the reference blocks of this folder. Needs the PyPI packages gguf==0.19.0 and numpy."""

import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

FOLDER = pathlib.Path(__file__).parent
HALVES = np.array(
    [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00],
    dtype=np.uint16,
)
# format, elements of a block, bytes of a block, byte offsets of its binary16 fields
FORMATS = [
    ("q8_0", T.Q8_0, 32, 34, [0], 256),
    ("q2_k", T.Q2_K, 256, 84, [80, 82], 96),
    ("q4_k", T.Q4_K, 256, 144, [0, 2], 96),
    ("iq2_xxs", T.IQ2_XXS, 256, 66, [0], 96),
    ("mxfp4", T.MXFP4, 32, 17, [], 512),
    ("bf16", T.BF16, 1, 2, [], 8192),
]


def blocks_of(kind, size, halves, count, rng):
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in halves:
        # Scales of ordinary size first, then edge values, then whatever bits chance gives.
        usual = rng.normal(0, 0.02, count).astype(np.float16).view(np.uint16)
        edge = rng.choice(HALVES, count)
        order = np.arange(count) % 4
        half = data[:, at : at + 2].copy().view(np.uint16)[:, 0]
        half = np.where(order < 2, usual, np.where(order == 2, edge, half)).astype(np.uint16)
        data[:, at : at + 2] = half.reshape(-1, 1).view(np.uint8)
    if kind == "mxfp4":
        data[:, 0] = np.arange(count) % 256
    data[0, [i for i in range(size) if not any(i in (a, a + 1) for a in halves)]] = 0
    data[1, [i for i in range(size) if not any(i in (a, a + 1) for a in halves)]] = 255
    return data


for name, kind, length, size, halves, count in FORMATS:
    rng = np.random.default_rng(20240 + int(kind))
    data = blocks_of(name, size, halves, count, rng)
    with np.errstate(all="ignore"):
        values = gguf.quants.dequantize(data, kind).astype("<f4")
    assert values.size == count * length
    (FOLDER / f"{name}.bin").write_bytes(data.tobytes() + values.tobytes())
