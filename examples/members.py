"""
Members: from single columns to NMF
===================================

A factor that is one column, or one row, is easy to read but noisy. NMF explains more, but mixes everything into each
factor. ``members=p`` lets each factor mix at most ``p`` columns or rows.
"""

from pydoc_data.topics import topics as documentation

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer

import gsnmf
from gsnmf.nmf import hals, truncated_svd

# %%
# Two data sets, five numbers of members
# --------------------------------------
# Python's documentation as words, and handwritten digits as pixels.

vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
data = {
    "documentation": (vectorizer.fit_transform(documentation.values()), 10),
    "digits": (load_digits().data[:300], 16),
}
members = (1, 2, 3, 5, 10)
quality, found = {}, {}
for name, (matrix, rank) in data.items():
    found[name] = [gsnmf.factorize(matrix, rank, effort="fast", members=p) for p in members]
    nmf = hals(matrix, rank, random_state=0).quality
    quality[name] = [result.quality for result in found[name]], nmf, truncated_svd(matrix, rank).quality
    print(f"{name:<14}" + "  ".join(f"{q:.1%}" for q in quality[name][0]) + f"  NMF {nmf:.1%}")

# %%
# More members are never worse. The first few bring most of what NMF has in addition; the dotted line is the truncated
# SVD, which no factorization of this rank can beat.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, (name, (ours, nmf, bound)) in zip(axes, quality.items(), strict=True):
    axis.plot(range(len(members)), np.multiply(ours, 100), "o-", color="tab:red")
    axis.axhline(100 * nmf, color="black", linestyle="--")
    axis.axhline(100 * bound, color="grey", linestyle=":")
    axis.text(0, 100 * nmf, "NMF", va="bottom")
    axis.text(0, 100 * bound, "truncated SVD", va="bottom", color="grey")
    axis.set(title=f"{name}, rank {data[name][1]}", xlabel="members per factor", ylabel="quality in percent")
    axis.set_xticks(range(len(members)), members)
    axis.margins(y=0.15)

# %%
# What a mixture looks like
# -------------------------
# A mixed factor still has a name: its members and their shares. Here are the topics with at most three.

words = vectorizer.get_feature_names_out()
result = found["documentation"][2]
for factor, (own, shares) in enumerate(result.members):
    names = words if factor < result.columns.size else list(documentation)
    print(" + ".join(f"{names[i]} {share:.0%}" for i, share in zip(own, shares, strict=True)))
plt.show()
