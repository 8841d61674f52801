"""
Certificates and uniqueness
===========================

Which answers come with a proof? Three of them do: the convex model has a lower bound on its optimum, small matrices
have a smallest exact decomposition, and a pattern of zeros can prove that it is the only one.
"""

import matplotlib.pyplot as plt
import numpy as np

import gsnmf
from gsnmf.convex import check_uniqueness, solve_convex, solve_exact
from gsnmf.datasets import fully_random, non_unique_example

# %%
# The convex model and its gap
# ----------------------------
# One variable per column and per row says how much it is needed. The solver stops when a lower bound on the optimum
# comes close to the value that it has reached. The red and blue bars are the columns and rows that were planted; all
# others get next to nothing.

truth = fully_random(0.1, shape=(60, 50), n_columns=6, n_rows=4, random_state=1)
solution = solve_convex(truth.matrix, 10, tolerance=1e-3)
print(solution)
print(f"value {solution.objective:.4f}, proved bound {solution.lower_bound:.4f}, gap {solution.gap:.1e}")

figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained", sharey=True)
sides = (
    ("columns", solution.columns, solution.column_diagonal, truth.columns, "tab:red"),
    ("rows", solution.rows, solution.row_diagonal, truth.rows, "tab:blue"),
)
for axis, (name, indices, diagonal, planted, color) in zip(axes, sides, strict=True):
    axis.bar(indices, diagonal, color=[color if index in planted else "black" for index in indices])
    axis.plot(planted, np.full(planted.size, -0.04), "^", color=color)
    axis.set(xlabel=name, xlim=(-1, truth.matrix.shape[name == "columns"]))
axes[0].set_ylabel("needed")
figure.suptitle("the diagonals of the solution; triangles mark what was planted")

# %%
# The value and the bound meet
# ----------------------------
# A tighter tolerance costs more steps. The bound needs no trust in the solver: any residual gives a valid one.

tolerances = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
solutions = [solve_convex(truth.matrix, 10, tolerance=tolerance) for tolerance in tolerances]
figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.semilogx(tolerances, [s.objective for s in solutions], "o-", color="tab:red", label="value reached")
axis.semilogx(tolerances, [s.lower_bound for s in solutions], "o-", color="tab:blue", label="proved lower bound")
axis.invert_xaxis()
axis.set(xlabel="tolerance", ylabel="objective")
axis.legend()

# %%
# The smallest exact decomposition
# --------------------------------
# Without noise, a small matrix can be decomposed exactly, and a mixed-integer program proves that nothing smaller
# exists. Here the answer is unique: no other block of zeros is large enough.

exact = fully_random(0.0, shape=(14, 12), n_columns=3, n_rows=2, random_state=0)
smallest = solve_exact(exact.matrix)
print(f"smallest: {smallest.columns.size} columns and {smallest.rows.size} rows, proved: {smallest.proved}")
print(check_uniqueness(exact.matrix, smallest.columns, smallest.rows).explanation)

# %%
# A counterexample
# ----------------
# This matrix can be explained by two columns and a row, or by a column and two rows: both pairs meet in zeros.

matrix = non_unique_example().matrix
answer = check_uniqueness(matrix, columns=[0, 1], rows=[2])
print(matrix, answer.answer, answer.explanation, sep="\n")
for columns, rows in (([0, 1], [2]), ([0], [1, 2])):
    weights = gsnmf.fit_weights(matrix, columns=columns, rows=rows)
    print(f"columns {columns}, rows {rows}: relative error {weights.relative_error:.1e}")
plt.show()
