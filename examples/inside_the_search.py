"""
Inside the search
=================

``method="auto"`` starts from several selections and exchanges columns and rows as long as the error falls. Its record
tells what it tried, and its alternatives tell what else it could have chosen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gsnmf
from gsnmf.nmf import truncated_svd

# %%
# Methods, and the search on top of them
# --------------------------------------
# The bars are the quality of sixteen columns and rows of the digits. The search ends at least as high as any method
# that it starts from.

X = load_digits().data
methods = ("spa-rows", "gspa", "spa-columns", "xray-columns", "pursuit")
quality = {method: gsnmf.factorize(X, 16, method=method).quality for method in methods}
result = gsnmf.factorize(X, 16, effort="fast")
quality["auto"] = result.quality
print(result.search)

figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
axis.bar(list(quality), np.multiply(list(quality.values()), 100), color=["0.7"] * len(methods) + ["tab:red"])
axis.axhline(100 * truncated_svd(X, 16).quality, color="grey", linestyle=":")
axis.text(-0.4, 100 * truncated_svd(X, 16).quality, "truncated SVD", va="bottom", color="grey")
axis.set(ylabel="quality in percent", ylim=(0, 85))

# %%
# What else was possible
# ----------------------
# For every chosen pixel, its best substitute and how much quality the exchange would cost. A low price means that the
# choice is nearly a tie.

table = result.alternatives(1)
print(table)

# %%
# Where the pixels are: the redder, the harder to replace.

prices = np.array([row[-1] for row in table.rows], dtype=float)
chosen = np.array([row[2] for row in table.rows])
figure, axis = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
axis.imshow(X.mean(axis=0).reshape(8, 8), cmap="gray_r")
marks = axis.scatter(chosen % 8, chosen // 8, c=prices, cmap="Reds", s=130, marker="s", edgecolor="black")
figure.colorbar(marks, label="points of quality lost without it")
axis.set(xticks=[], yticks=[])
plt.show()
