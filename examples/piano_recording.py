"""
Piano: notes of a recording
===========================

Three notes are played, C4, E4 and C5. E4 and C5 sound alone for a moment, but C4 only ever sounds together with another
note. Still, its fundamental is a frequency that neither of the others has. C5 has no frequency of its own: each of its
partials is one of C4's. So one note needs an anchor frequency and the others need pure moments.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.signal import ShortTimeFFT
from scipy.signal.windows import hann
from sklearn.decomposition import NMF

from gsnmf import GSNMF

# %%
# The recording
# -------------
# Eight chords of half a second each; every stroke has six decaying partials.

RATE = 8000
NOTES = {"C4": 261.63, "E4": 329.63, "C5": 523.25}
SCORE = ("E4", "C4 E4", "C5", "C4 C5", "C4 E4 C5", "E4 C5", "C4 E4", "C4 C5")

time = np.arange(RATE // 2) / RATE
envelope = np.minimum(1.0, time / 0.01) * np.minimum(1.0, (0.5 - time) / 0.02)


def stroke(pitch):
    """One note of half a second."""
    partials = (0.6**k * np.sin(2 * np.pi * (k + 1) * pitch * time) * np.exp(-(2 + k) * time) for k in range(6))
    return sum(partials) * envelope


sources = {
    name: np.concatenate([stroke(pitch) if name in chord.split() else 0 * time for chord in SCORE])
    for name, pitch in NOTES.items()
}
recording = sum(sources.values()) + 1e-4 * np.random.default_rng(0).standard_normal(len(SCORE) * time.size)
transform = ShortTimeFFT(hann(1024, sym=False), hop=256, fs=RATE)
spectrum = transform.stft(recording)  # frequencies x moments
X = np.abs(spectrum).T  # moments x frequencies

# %%
# Separating it
# -------------
# Each factor gets its share of the spectrogram, and is turned back into sound. The signal-to-distortion ratio compares
# it with the note as it was played by itself: the higher, the better.


def separated(W, H):
    """The sound of each component."""
    parts = np.einsum("tk,kf->kft", W, H)
    return [transform.istft(spectrum * share, k1=len(recording)) for share in parts / (parts.sum(axis=0) + 1e-12)]


def matched(parts):
    """For each note its component, and the signal-to-distortion ratio in decibels."""
    ratios = np.array([[10 * np.log10((s @ s) / np.sum((s - p) ** 2)) for p in parts] for s in sources.values()])
    notes, order = linear_sum_assignment(-ratios)
    return order, ratios[notes, order]


models = {
    "frequencies and moments": GSNMF(3),
    "moments alone": GSNMF(3, method="snpa-rows"),
    "NMF": NMF(3, init="nndsvda", max_iter=1000, tol=1e-6),
}
found = {}
for label, model in models.items():
    W = model.fit_transform(X)
    order, ratios = matched(separated(W, model.components_))
    found[label] = W[:, order]
    print(f"{label:<24}" + "  ".join(f"{name} {ratio:4.1f} dB" for name, ratio in zip(NOTES, ratios, strict=True)))
chosen = models["frequencies and moments"]
for frequency in transform.f[chosen.feature_indices_]:
    print(f"anchor frequency {frequency:.0f} Hz")
for moment in transform.delta_t * (chosen.sample_indices_ + transform.p_min):
    print(f"pure moment {moment:.2f} s")

# %%
# The spectrogram, and when each note sounds: as it was played (grey), and as it was found (red). NMF separates the
# notes as well, but cannot say where to listen.

figure, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained", sharex=True)
times = transform.delta_t * (np.arange(spectrum.shape[1]) + transform.p_min)
level = 20 * np.log10(np.abs(spectrum[: 1500 * 1024 // RATE]) + 1e-3)
axes[0].imshow(level, origin="lower", aspect="auto", extent=(times[0], times[-1], 0, 1500), cmap="magma")
axes[0].set_ylabel("frequency, Hz")
for row, source in enumerate(sources.values()):
    played, strength = np.linalg.norm(transform.stft(source), axis=0), found["frequencies and moments"][:, row]
    axes[1].fill_between(times, row, row + 0.9 * played / played.max(), color="0.8")
    axes[1].plot(times, row + 0.9 * strength / strength.max(), color="tab:red", linewidth=1)
axes[1].set_yticks(np.arange(3) + 0.4, list(NOTES))
axes[1].set_xlabel("time, s")
plt.show()
