"""
Choosing the rank
=================

How many columns and rows should it be, and would the same ones be chosen again? The error on the data always falls with
more of them. The error on entries that were left out does not.
"""

import matplotlib.pyplot as plt

import gsnmf
from gsnmf.datasets import planted

# %%
# Predicting what was left out
# ----------------------------
# Three columns and two rows are planted, under noise of a tenth of the matrix. ``choose_rank`` leaves out a tenth of
# the entries, five times, and predicts them with every rank.

truth = planted((80, 60), n_columns=3, n_rows=2, noise_level=0.1, random_state=0)
choice = gsnmf.choose_rank(truth.matrix, range(2, 11), effort="fast")
print(choice)
choice.plot()

# %%
# How stable is the choice?
# -------------------------
# Rows and columns are resampled and noise is added; the bars count how often each index came back. We ask for two
# factors too many, to see what happens to them.

stable = {}
for rank in (choice.rank, choice.rank + 2):
    result = gsnmf.factorize(truth.matrix, rank, effort="fast")
    stable[rank] = result, gsnmf.stability(result, n_repeats=5)
    print(stable[rank][1].table, "\n")

# %%
# Red bars are columns, blue bars are rows. The five that were planted come back; those that only fit noise do so less
# often.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axis, (rank, (result, sure)) in zip(axes, stable.items(), strict=True):
    names = [f"column {j}" for j in result.columns] + [f"row {i}" for i in result.rows]
    axis.bar(names, sure.overall, color=["tab:red"] * result.columns.size + ["tab:blue"] * result.rows.size)
    axis.set_title(f"rank {rank}")
    axis.tick_params(axis="x", rotation=60)
plt.show()
