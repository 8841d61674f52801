"""
Faces: parts from key pixels
============================

Drawn faces that differ in hair, brows, eyes, glasses, mouth and beard. Each part covers at least one place that no
other part covers. Such a pixel says how much of the part a face has, and the faces that light it up show the whole
part.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from gsnmf import GSNMF
from gsnmf.nmf import hals

# %%
# Four hundred faces
# ------------------
# A face is the outline of a head plus a random amount of each part, drawn with a little noise.

SIDE = 40
y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) * 2 - 1


def blob(at_x, at_y, wide, high, sharp=6.0):
    """A soft ellipse."""
    return expit(sharp * (1 - ((x - at_x) / wide) ** 2 - ((y - at_y) / high) ** 2))


def ring(at_x, at_y, wide, high, sharp=6.0):
    """The rim of a soft ellipse."""
    return np.exp(-sharp * (((x - at_x) / wide) ** 2 + ((y - at_y) / high) ** 2 - 1) ** 2)


below = y > 0.42 + 0.25 * x**2
PARTS = {
    "head": ring(0, 0.05, 0.72, 0.9, 30),
    "hair": blob(0, -0.85, 0.75, 0.35) * (y < -0.45),
    "brows": blob(-0.3, -0.36, 0.2, 0.06) + blob(0.3, -0.36, 0.2, 0.06),
    "eyes": blob(-0.3, -0.14, 0.09, 0.08) + blob(0.3, -0.14, 0.09, 0.08),
    "glasses": ring(-0.3, -0.12, 0.24, 0.2, 20) + ring(0.3, -0.12, 0.24, 0.2, 20),
    "smile": ring(0, 0.28, 0.36, 0.26, 25) * (y > 0.4),
    "open mouth": blob(0, 0.42, 0.14, 0.16),
    "beard": blob(0, 0.75, 0.5, 0.3) * below,
}
parts = np.array([part.ravel() for part in PARTS.values()])
parts /= parts.max(axis=1, keepdims=True)
rng = np.random.default_rng(0)
amounts = rng.random((400, len(PARTS))) * (rng.random((400, len(PARTS))) < 0.6)
amounts[:, 0] = rng.uniform(0.5, 1, 400)
faces = np.maximum(amounts @ parts + 0.02 * rng.standard_normal((400, SIDE * SIDE)), 0)

figure, axes = plt.subplots(2, 8, figsize=(10, 2.7), layout="constrained")
for axis, face in zip(axes.flat, faces, strict=False):
    axis.imshow(face.reshape(SIDE, SIDE), cmap="gray_r")
    axis.set_axis_off()

# %%
# One pixel per part
# ------------------
# Eight factors are asked for, and the library may take pixels or faces. Below, the red mark is the chosen pixel and the
# picture is what lights up with it.

model = GSNMF(len(PARTS), effort="fast").fit(faces)
print(f"{model.feature_indices_.size} pixels and {model.sample_indices_.size} faces explain {model.quality_:.1%}")
similarity = (
    model.components_ @ parts.T / np.outer(np.linalg.norm(model.components_, axis=1), np.linalg.norm(parts, axis=1))
)
figure, axes = plt.subplots(3, len(PARTS), figsize=(11, 4.4), layout="constrained")
nmf = hals(faces, len(PARTS), random_state=0)
against = nmf.H @ parts.T / np.outer(np.linalg.norm(nmf.H, axis=1), np.linalg.norm(parts, axis=1))
for k, name in enumerate(PARTS):
    best = similarity[:, k].argmax()
    axes[0, k].imshow(parts[k].reshape(SIDE, SIDE), cmap="gray_r")
    axes[0, k].set_title(name)
    axes[1, k].imshow(model.components_[best].reshape(SIDE, SIDE), cmap="gray_r")
    if best < model.feature_indices_.size:
        row, column = divmod(model.feature_indices_[best], SIDE)
        axes[1, k].plot(column, row, "s", color="tab:red", markersize=5)
    axes[2, k].imshow(nmf.H[against[:, k].argmax()].reshape(SIDE, SIDE), cmap="gray_r")
for axis, title in zip(axes[:, 0], ("true part", "by key pixel", "NMF"), strict=True):
    axis.set_ylabel(title)
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
print(f"worst cosine with a true part: {similarity.max(axis=0).min():.3f}, NMF {against.max(axis=0).min():.3f}")
plt.show()
