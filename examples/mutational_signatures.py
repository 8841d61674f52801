"""
Mutational signatures
=====================

Each process that damages DNA leaves its own pattern over 96 kinds of mutations. A tumour shows the sum of the patterns
of its history. Which patterns are there? Here tumours are drawn from a stated model, so that we can tell how well it
went.
"""

import matplotlib.pyplot as plt
import numpy as np

from gsnmf import GSNMF
from gsnmf.nmf import hals

# %%
# The tumours
# -----------
# The 96 channels are six substitutions, each in sixteen contexts of neighbouring bases. Five made-up signatures: ageing
# (C>T before G), an enzyme (C>T and C>G after T), sunlight (C>T between pyrimidines), smoke (C>A), and a flat one. A
# tumour draws its activities from a sparse gamma distribution and its counts from Poisson distributions.

rng = np.random.default_rng(4)
SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
COLORS = ("deepskyblue", "black", "red", "lightgrey", "yellowgreen", "pink")
channels = [f"{left}[{sub}]{right}" for sub in SUBSTITUTIONS for left in "ACGT" for right in "ACGT"]
before, sub, after = np.array([(c[0], c[2:5], c[6]) for c in channels]).T
shapes = {
    "ageing": 8.0 * (sub == "C>T") * (after == "G") + 0.1 * (sub == "T>C"),
    "enzyme": 6.0 * np.isin(sub, ("C>T", "C>G")) * (before == "T") * (after != "G"),
    "sunlight": 5.0 * (sub == "C>T") * np.isin(before, ("C", "T")) * np.isin(after, ("C", "T")),
    "smoke": 3.0 * (sub == "C>A") + 0.3 * (sub == "T>A"),
    "flat": np.ones(96),
}
signatures = np.array(list(shapes.values())) * rng.uniform(0.5, 1.5, (5, 96))
signatures /= signatures.sum(axis=1, keepdims=True)
activities = rng.gamma(0.4, 1.0, (120, 5)) * rng.lognormal(7, 0.8, (120, 1))
counts = rng.poisson(activities @ signatures).astype(float)
counts = counts[counts.sum(axis=1) > 100]

# %%
# Signatures by example
# ---------------------
# A signature is either a tumour that shows nothing else, or a channel that nothing else touches. NMF is there to
# compare: it finds the same patterns, as mixtures that no tumour has.

profiles = counts / counts.sum(axis=1, keepdims=True)
model = GSNMF(5, effort="fast").fit(profiles)
nmf = hals(profiles, 5, random_state=0, n_restarts=3)


def cosines(found):
    """Cosine between every true signature and every component found."""
    lengths = np.outer(np.linalg.norm(signatures, axis=1), np.linalg.norm(found, axis=1))
    return signatures @ found.T / lengths


similarity = cosines(model.components_)
names = model.get_feature_names_out(channels)
for k, true in enumerate(shapes):
    best = similarity[k].argmax()
    own = similarity[k, best]
    print(
        f"{true:<9} {names[best].replace('sample:', 'tumour '):<15} cosine {own:.3f}, NMF {cosines(nmf.H)[k].max():.3f}"
    )

# %%
# Bars are the signatures that were found; outlines are the true ones.

figure, axes = plt.subplots(5, 1, figsize=(10, 8), layout="constrained", sharex=True)
for k, (axis, true) in enumerate(zip(axes, shapes, strict=True)):
    component = model.components_[similarity[k].argmax()]
    axis.bar(range(96), component / component.sum(), color=np.repeat(COLORS, 16))
    axis.step(np.arange(97) - 0.5, np.r_[signatures[k], 0], where="post", color="0.3", linewidth=0.8)
    axis.set_ylabel(true)
    axis.set_yticks([])
axes[-1].set_xticks(np.arange(6) * 16 + 7.5, SUBSTITUTIONS)
plt.show()
