"""
Missing ratings
===============

Viewers rate films. Most have seen a few, so most of the table is missing, and zero would be a wrong guess. The rest is
predicted from a few real films and a few real viewers, each of which stands for one taste.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import gsnmf
from gsnmf.nmf import hals

# %%
# The ratings
# -----------
# There are four tastes. A film appeals to them in different degrees, and a viewer mixes them. Every viewer has rated 15
# % of the films, with a little noise. What is stored was rated, so ``"unstored"`` means missing.

rng = np.random.default_rng(0)
n_viewers, n_films = 300, 200
tastes = ("action", "romance", "horror", "history")
likes = 10 * rng.dirichlet(np.full(4, 0.4), n_films).T
mixing = rng.dirichlet(np.full(4, 0.6), n_viewers)
opinion = mixing @ likes
rated = rng.random(opinion.shape) < 0.15
noisy = np.maximum(opinion + 0.2 * rng.standard_normal(opinion.shape), 0.01)
ratings = sp.csr_array((noisy[rated], np.nonzero(rated)), shape=opinion.shape)
print(f"{ratings.nnz} ratings, {ratings.nnz / rated.size:.0%} of the table")

# %%
# Predicting the rest
# -------------------
# The error of the prediction on films that nobody was asked about, in the unit of the ratings.

result = gsnmf.factorize(ratings, 4, missing_values="unstored")
print(result, "\n")
free = hals(ratings, 4, missing_values="unstored", random_state=0)
means = np.asarray(ratings.sum(axis=0) / np.maximum(rated.sum(axis=0), 1))
predictions = {
    "viewers and films": result.reconstruct(),
    "NMF": free.W @ free.H,
    "mean of the film": means + 0 * opinion,
}
for name, predicted in predictions.items():
    print(f"{name:<18} {np.sqrt(np.mean((predicted - opinion)[~rated] ** 2)):.2f}")

# %%
# What was chosen? Each film is one that a single taste likes, and each viewer one who has a single taste.

for film in result.columns:
    best = likes[:, film].argmax()
    print(f"film {film:>3}    {likes[best, film] / likes[:, film].sum():.0%} {tastes[best]}")
for viewer in result.rows:
    best = mixing[viewer].argmax()
    print(f"viewer {viewer:>3}  {mixing[viewer, best]:.0%} {tastes[best]}")

# %%
# The table as it is known, the truth behind it, and the prediction, for the first fifty viewers and eighty films.

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained", sharey=True)
shown = np.s_[:50, :80]
pictures = {
    "ratings": np.where(rated, noisy, np.nan),
    "true opinions": opinion,
    "predicted": predictions["viewers and films"],
}
for axis, (title, image) in zip(axes, pictures.items(), strict=True):
    axis.imshow(image[shown], cmap="YlOrBr", vmin=0, vmax=8)
    axis.set(title=title, xlabel="films", xticks=[], yticks=[])
axes[0].set_ylabel("viewers")
plt.show()
