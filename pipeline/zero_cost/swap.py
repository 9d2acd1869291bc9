"""swap: how many different activation patterns the images make.

Peng, Song, Fayek, Ciesielski and Chang, "SWAP-NAS: sample-wise activation patterns for ultra-fast NAS", ICLR 2024. A
pattern belongs to one unit: the signs of its input over all images of the batch. The score is the number of different
patterns among all units of all activations. It saturates at the number of units, and at 2^images.
"""

from __future__ import annotations

import numpy as np

from pipeline.probe import Probe, refuse_constant


def score(probe: Probe) -> float:
    """Return the score."""
    refuse_constant(probe)
    if not probe.signs:
        return 0.0
    packed = np.concatenate([np.packbits(signs.numpy(), axis=0).T for signs in probe.signs])  # (n_units, n_bytes)
    n_bytes = packed.shape[1]
    patterns = np.ascontiguousarray(packed).view(f"u{n_bytes}" if n_bytes in {1, 2, 4, 8} else f"V{n_bytes}")
    return float(len(np.unique(patterns)))
