"""
Geometry: corners and curves
============================

Columns that sum to one are points. Separable NMF looks for the corners of their convex hull, and successive projection
finds them one by one. If the points lie on a curve, every point is a corner, and only rows can help.
"""

import matplotlib.pyplot as plt
import numpy as np

import gsnmf
from gsnmf.datasets import two_one_separable

# %%
# Successive projection
# ---------------------
# Columns of this matrix are mixtures of three corners. The longest column must be a corner, since a norm is largest at
# a corner. Project it away, and take the longest again. The colours show the length of what is left at each step: dark
# points are already explained.

rng = np.random.default_rng(1)
corners = np.array([[0.9, 0.1, 0.15], [0.05, 0.7, 0.25], [0.05, 0.2, 0.6]])
points = corners @ np.hstack([np.eye(3), rng.dirichlet(np.ones(3), 60).T])
points = points[:, rng.permutation(63)]
chosen = gsnmf.select(points, 3, method="spa-columns").columns
plane = np.array([[1.0, 0.5], [0.0, np.sqrt(3) / 2], [0.0, 0.0]])  # the simplex, drawn as a triangle
x, y = plane.T @ points

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
residual = points.copy()
for step, axis in enumerate(axes):
    lengths = np.linalg.norm(residual, axis=0)
    axis.fill(*np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]]).T, fill=False, color="0.8")
    axis.scatter(x, y, c=lengths, cmap="plasma", s=18, vmin=0)
    axis.plot(x[chosen[: step + 1]], y[chosen[: step + 1]], "o", mfc="none", mec="tab:red", ms=12, mew=2)
    axis.set(title=f"choice {step + 1}: the longest", xticks=[], yticks=[], aspect="equal")
    direction = residual[:, chosen[step]] / np.linalg.norm(residual[:, chosen[step]])
    residual -= np.outer(direction, direction @ residual)

# %%
# When every point is a corner
# ----------------------------
# The columns of this 3 x 20 matrix lie on a parabola and at two corners of the triangle. None is a mixture of others,
# so columns alone need all twenty. But the last row tells how far a point is from the lower edge: together with the two
# corners, it explains everything.

curve = two_one_separable(20).matrix
x, y = curve[1] + curve[2] / 2, curve[2] * np.sqrt(3) / 2
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].fill([0, 1, 0.5], [0, 0, np.sqrt(3) / 2], fill=False, color="0.8")
axes[0].plot(x, y, "ko", markersize=4)
axes[0].plot(x[:2], y[:2], "o", mfc="none", mec="tab:red", ms=12, mew=2)
axes[0].annotate("", (0.5, 0.42), (0.5, 0), arrowprops={"arrowstyle": "<->", "color": "tab:blue", "lw": 2})
axes[0].text(0.52, 0.2, "the last row", color="tab:blue")
axes[0].set(title="twenty columns", xticks=[], yticks=[], aspect="equal")

ranks = (1, 2, 3, 4, 6, 9, 13, 17, 20)
columns = [gsnmf.factorize(curve, (rank, 0), effort="fast").relative_error for rank in ranks]
axes[1].plot(ranks, columns, "o-", color="tab:red", label="columns alone")
both = gsnmf.factorize(curve, (2, 1), effort="fast")
axes[1].plot([3], [both.relative_error], "s", color="tab:blue", markersize=10, label="two columns and a row")
axes[1].set(xlabel="rank", ylabel="relative error", xticks=range(0, 21, 5))
axes[1].legend()
print(f"columns {both.columns.tolist()} and row {both.rows.tolist()}: relative error {both.relative_error:.1e}")
plt.show()
