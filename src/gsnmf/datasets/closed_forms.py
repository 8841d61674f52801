"""The closed-form matrices of the paper: each shows one property of generalized separable matrices."""

from __future__ import annotations

import numpy as np

from gsnmf.datasets.ground_truth import Planted, stacked_factors
from gsnmf.matrix.checks import check_count, check_positive
from gsnmf.support.arrays import Doubles


def two_one_separable(n: int) -> Planted:
    r"""The 3 x n matrix of Lemma 1: (2, 1)-separable, but not (n - 1, 0)-separable.

    .. math:: M_n = \begin{pmatrix} 1 & 0 & 1/2 & 0 & x^T \\ 0 & 1 & 0 & 1/2 & y^T \\
        0 & 0 & 1/2 & 1/2 & z^T \end{pmatrix},

    with :math:`y_i = 2 (1/2 - x_i)^2`, :math:`z_i = 1 - x_i - y_i` and :math:`x` evenly spaced strictly
    inside (0, 1/2). Every column is an extreme ray of the cone that they span; but two columns and the last
    row explain everything, :math:`M_n = M_n(:, 1{:}2) M_n(1{:}2, :) + (0, 0, 1)^T M_n(3, :)`.

    Parameters
    ----------
    n : int
        Number of columns, at least 4.

    Returns
    -------
    Planted
        With columns 0 and 1 and row 2. The decomposition is not the only one of its size: three rows do too.

    Examples
    --------
    >>> two_one_separable(5).matrix
    array([[1.   , 0.   , 0.5  , 0.   , 0.25 ],
           [0.   , 1.   , 0.   , 0.5  , 0.125],
           [0.   , 0.   , 0.5  , 0.5  , 0.625]])
    """
    M = _curve(check_count(n, "n"), "n")
    W, H = np.eye(3), M  # [M(:, 1:2), P2] and [P1; M(3, :)]
    return _closed_form(M, W, H, columns=[0, 1], rows=[2])


def three_three_separable(m: int, n: int) -> Planted:
    r"""The matrix of Property 5: (3, 3)-separable, while neither columns nor rows alone compress it.

    .. math:: M = \begin{pmatrix} 0_{3,3} & M_n \\ M_m^T & 0_{m,n} \end{pmatrix}

    of shape (m + 3) x (n + 3), with :math:`M_n` as in `two_one_separable`. It is not (n + 2, 0)-separable nor
    (0, m + 2)-separable.

    Parameters
    ----------
    m, n : int
        At least 4 each.

    Returns
    -------
    Planted
        With columns and rows 2, 3 and 4. The decomposition is not the only one of its size.

    Examples
    --------
    >>> truth = three_three_separable(20, 30)
    >>> truth.matrix.shape, truth.columns, truth.rows
    ((23, 33), array([2, 3, 4]), array([2, 3, 4]))
    """
    upper, lower = _curve(check_count(n, "n"), "n"), _curve(check_count(m, "m"), "m").T
    rows, columns = lower.shape[0] + 3, upper.shape[1] + 3
    M = np.zeros((rows, columns))
    M[:3, 3:] = upper
    M[3:, :3] = lower
    P1, P2 = np.zeros((3, columns)), np.zeros((rows, 3))
    P1[0, 2] = P2[2, 0] = 1.0  # column 2 and row 2 serve themselves alone
    P1[1:, 3:] = upper[:2]
    P2[3:, 1:] = lower[:, :2]
    selected = [2, 3, 4]
    return _closed_form(M, np.hstack([M[:, selected], P2]), np.vstack([P1, M[selected]]), selected, selected)


def non_unique_example() -> Planted:
    """The paper's smallest matrix that is both (2, 1)- and (1, 2)-separable (after Property 9).

    Returns
    -------
    Planted
        With columns 0 and 1 and row 2; column 0 and rows 1 and 2 do as well.

    Examples
    --------
    >>> non_unique_example().matrix
    array([[1., 0., 2.],
           [0., 1., 2.],
           [0., 0., 1.]])
    """
    M = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    return _closed_form(M, W, H, columns=[0, 1], rows=[2])


def gspa_failure_example(epsilon: float = 0.001) -> Planted:
    r"""The paper's Example 1: a 5 x 5 matrix, not scaled, on which GSPA fails after scaling.

    It is (2, 2)-separable with

    .. math:: W_1 = \begin{pmatrix} 1 & \epsilon \\ 1 & 2 \\ 1 & 3 \end{pmatrix}, \quad
        H_1 = \begin{pmatrix} \epsilon & 2\epsilon & 3\epsilon \\ \epsilon & 1 & 2 \end{pmatrix}, \quad
        H_2 = W_1^T, \quad W_2 = H_1^T.

    Scaled, its largest column is the third and its largest row the first, and neither is planted.

    Parameters
    ----------
    epsilon : float
        Positive; the paper takes 0.001.

    Returns
    -------
    Planted
        With columns 0 and 1 and rows 3 and 4 (the paper's text has rows {5, 6}, counted from one; {4, 5} is
        meant).

    Examples
    --------
    >>> gspa_failure_example().matrix.round(3)
    array([[1.0000e+00, 1.0000e-03, 2.0000e-03, 6.0000e-03, 9.0000e-03],
           [1.0000e+00, 2.0000e+00, 6.0000e-03, 4.0040e+00, 7.0050e+00],
           [1.0000e+00, 3.0000e+00, 9.0000e-03, 7.0050e+00, 1.2006e+01],
           [0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+00],
           [0.0000e+00, 0.0000e+00, 1.0000e-03, 2.0000e+00, 3.0000e+00]])
    """
    small = check_positive(epsilon, "epsilon")
    W1 = np.array([[1.0, small], [1.0, 2.0], [1.0, 3.0]])
    H1 = np.array([[small, 2 * small, 3 * small], [small, 1.0, 2.0]])
    W, H = stacked_factors(W1, H1, H1.T, W1.T)
    return _closed_form(W @ H, W, H, columns=[0, 1], rows=[3, 4])


def _closed_form(M: Doubles, W: Doubles, H: Doubles, columns: list[int], rows: list[int]) -> Planted:
    return Planted(M, M.copy(), np.array(columns, dtype=np.intp), np.array(rows, dtype=np.intp), W, H, 0.0)


def _curve(n: int, name: str) -> Doubles:
    """The matrix M_n of Lemma 1."""
    if n < 4:
        raise ValueError(f"{name} must be an integer of at least 4; got {n}.")
    x = np.concatenate([[0.5, 0.0], np.linspace(0.0, 0.5, n - 2)[1:-1]])
    y = 2 * (0.5 - x) ** 2
    return np.hstack([np.eye(3, 2), np.vstack([x, y, 1 - x - y])])
