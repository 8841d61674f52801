// Loops over the observed entries of a matrix: sums, small problems, and residuals.
//
// Each row i of the matrix is a least-squares problem of its own,
//
//     min_x 1/2 sum_{j observed} w_ij (m_ij - x'f_j)^2,
//
// in which f_j is row j of a factor F. Which j take part differs from row to row, so every row has its own Gram matrix.
#pragma once

#include "least_squares.hpp"
#include "simplex.hpp"

namespace gsnmf {

// Observed entries by rows, as in a CSR array; stored zeros are entries like any other.
template <class T, class I>
struct Entries {
    Vector<const I> indptr;
    Vector<const I> indices;
    Vector<const T> values;
    Vector<const T> weights;  // one positive weight per entry; empty if all weights are one

    Index n_rows() const { return indptr.size - 1; }
    double weight(Index q) const { return weights.size ? double(weights[q]) : 1.0; }
};

// Gram matrix, its lower triangle, and linear term of row i.
template <class T, class I>
void accumulate(
    const Entries<T, I>& entries, Index i, Matrix<const double> F, Matrix<double> gram, double* __restrict linear
) {
    const Index r = F.n_columns;
    std::fill_n(linear, r, 0.0);
    for (Index k = 0; k < r; ++k) std::fill_n(&gram(k, 0), k + 1, 0.0);
    Index q = entries.indptr[i];
    const Index end = entries.indptr[i + 1];
    for (; q + 4 <= end; q += 4) {  // four entries together read and write the sums once
        const double w0 = entries.weight(q), w1 = entries.weight(q + 1);
        const double w2 = entries.weight(q + 2), w3 = entries.weight(q + 3);
        const double v0 = w0 * entries.values[q], v1 = w1 * entries.values[q + 1];
        const double v2 = w2 * entries.values[q + 2], v3 = w3 * entries.values[q + 3];
        const double *f0 = &F(entries.indices[q], 0), *f1 = &F(entries.indices[q + 1], 0);
        const double *f2 = &F(entries.indices[q + 2], 0), *f3 = &F(entries.indices[q + 3], 0);
        for (Index k = 0; k < r; ++k) {
            linear[k] += v0 * f0[k] + v1 * f1[k] + v2 * f2[k] + v3 * f3[k];
            const double g0 = w0 * f0[k], g1 = w1 * f1[k], g2 = w2 * f2[k], g3 = w3 * f3[k];
            double* __restrict row = &gram(k, 0);
            for (Index l = 0; l <= k; ++l) row[l] += g0 * f0[l] + g1 * f1[l] + g2 * f2[l] + g3 * f3[l];
        }
    }
    for (; q < end; ++q) {
        const double weight = entries.weight(q), value = weight * entries.values[q];
        const double* f = &F(entries.indices[q], 0);
        for (Index k = 0; k < r; ++k) {
            linear[k] += value * f[k];
            const double factor = weight * f[k];
            double* __restrict row = &gram(k, 0);
            for (Index l = 0; l <= k; ++l) row[l] += factor * f[l];
        }
    }
}

// Scale to a unit diagonal, and fill the upper triangle; `lengths` are the square roots of the diagonal. Where a diagonal
// entry is zero, so are its row and column.
inline void scale_to_unit_diagonal(Matrix<double> gram, Vector<double> lengths) {
    for (Index k = 0; k < lengths.size; ++k) lengths[k] = std::sqrt(gram(k, k));
    for (Index k = 0; k < lengths.size; ++k) {
        for (Index l = 0; l <= k; ++l) {
            const double scale = lengths[k] * lengths[l];
            gram(k, l) = gram(l, k) = scale > 0.0 ? gram(k, l) / scale : 0.0;
        }
        if (lengths[k] > 0.0) gram(k, k) = 1.0;
    }
}

// Cholesky factor in the lower triangle, in place; a pivot that is only rounding becomes zero.
inline void factorize(Matrix<double> gram) {
    for (Index k = 0; k < gram.n_rows; ++k) {
        double* own = &gram(k, 0);
        const double diagonal = own[k];
        for (Index l = 0; l <= k; ++l) {
            const double* other = &gram(l, 0);
            double entry = own[l];
            for (Index p = 0; p < l; ++p) entry -= own[p] * other[p];
            if (l == k)
                own[k] = entry > dependent * diagonal ? std::sqrt(entry) : 0.0;
            else
                own[l] = other[l] > 0.0 ? entry / other[l] : 0.0;
        }
    }
}

// Solve L z = x in place.
inline void solve_forward(Matrix<const double> lower, Vector<double> x) {
    for (Index k = 0; k < x.size; ++k) {
        const double* row = &lower(k, 0);
        double value = x[k];
        for (Index p = 0; p < k; ++p) value -= row[p] * x[p];
        x[k] = row[k] > 0.0 ? value / row[k] : 0.0;
    }
}

// Solve L'z = x in place.
inline void solve_backward(Matrix<const double> lower, Vector<double> x) {
    for (Index k = x.size - 1; k >= 0; --k) {
        const double* row = &lower(k, 0);
        x[k] = row[k] > 0.0 ? x[k] / row[k] : 0.0;
        for (Index p = 0; p < k; ++p) x[p] -= x[k] * row[p];
    }
}

// The Gram matrix and the linear term of one row's problem, and the memory to solve it. Only the sums over entries depend
// on the types of the entries, so the solvers are compiled once.
class RowProblem {
public:
    explicit RowProblem(Index r)
        : gram_memory_(r * r), column_memory_(r * r), linear_memory_(r), length_memory_(r), target_memory_(r), work_(r),
          gram(gram_memory_.data(), r, r), linear(linear_memory_.data(), r), columns_(column_memory_.data(), r, r),
          lengths_(length_memory_.data(), r), target_(target_memory_.data(), r) {}

    RowProblem(const RowProblem&) = delete;  // the views point into the memory of this object

    double solve_nonnegative(Vector<double> x, Vector<const double> shown);
    void solve_on_simplex(Vector<double> x);
    double descend(Vector<double> x, Index n_sweeps, const bool* free);
    void add_prior(const double* values, const double* weights);

private:
    std::vector<double> gram_memory_, column_memory_, linear_memory_, length_memory_, target_memory_;
    Workspace work_;

public:
    const Matrix<double> gram;
    const Vector<double> linear;

private:
    const Matrix<double> columns_;
    const Vector<double> lengths_, target_;
};

// The minimiser x >= 0, in place, and the squared violation of its optimality conditions. An unknown is zero if the observed
// entries hold less than `shown` of the squared length of its column of F.
inline double RowProblem::solve_nonnegative(Vector<double> x, Vector<const double> shown) {
    const Index r = x.size;
    const Columns problem{columns_, gram};
    for (Index k = 0; k < r; ++k)
        if (gram(k, k) < shown[k])
            for (Index l = 0; l < r; ++l) gram(std::max(k, l), std::min(k, l)) = 0.0;
    scale_to_unit_diagonal(gram, lengths_);
    for (Index k = 0; k < r; ++k) {
        linear[k] = lengths_[k] > 0.0 ? linear[k] / lengths_[k] : 0.0;
        x[k] = positive(linear[k]);
    }
    if (!principal_pivoting(x, problem, linear, true, work_)) {
        std::fill(x.begin(), x.end(), 0.0);
        std::copy(linear.begin(), linear.end(), target_.begin());
        std::copy_n(gram.data, gram.size(), columns_.data);
        factorize(columns_);
        solve_forward(columns_, target_);
        work_.passive.clear();
        active_set(x, problem, target_, slope_threshold(target_), false, work_);
    }
    double squared_violation = 0.0;
    for (Index k = 0; k < r; ++k) {
        double slope = -linear[k];
        for (Index l = 0; l < r; ++l) slope += gram(k, l) * x[l];
        const double violation = std::min(x[k], slope);
        squared_violation += violation * violation;
    }
    for (Index k = 0; k < r; ++k) x[k] = lengths_[k] > 0.0 ? x[k] / lengths_[k] : 0.0;
    return squared_violation;
}

// The minimiser over x >= 0 with sum one; on entry x is zero. A constant added to the Gram matrix and to the linear term
// changes no minimiser on the simplex, and makes columns independent as soon as they are affinely independent.
inline void RowProblem::solve_on_simplex(Vector<double> x) {
    const Index r = x.size;
    double shift = 0.0, largest = 0.0;
    for (Index k = 0; k < r; ++k) {
        shift += gram(k, k) / r;
        largest = std::max(largest, gram(k, k));
    }
    if (shift == 0.0) shift = 1.0;
    for (Index k = 0; k < r; ++k) {
        linear[k] += shift;
        for (Index l = 0; l <= k; ++l) {
            gram(k, l) += shift;
            gram(l, k) = columns_(k, l) = gram(k, l);
        }
    }
    factorize(columns_);
    solve_forward(columns_, linear);
    simplex_from_nearest(x, {columns_, gram}, std::sqrt(largest + shift), linear, work_);
}

// Add half of sum_k v_k (x_k - p_k)^2 with prior values p and weights v.
inline void RowProblem::add_prior(const double* values, const double* weights) {
    for (Index k = 0; k < linear.size; ++k) {
        gram(k, k) += weights[k];
        linear[k] += weights[k] * values[k];
    }
}

// Sweeps of coordinate descent over x >= 0, in place, over the unknowns marked by `free` (all of them if it is null).
// Returns the squared violation of the optimality conditions before the sweeps, each unknown scaled so that its second
// derivative is one.
inline double RowProblem::descend(Vector<double> x, Index n_sweeps, const bool* free) {
    const Index r = x.size;
    const auto may_change = [&](Index k) { return gram(k, k) > 0.0 && (!free || free[k]); };
    for (Index k = 0; k < r; ++k)
        for (Index l = 0; l < k; ++l) gram(l, k) = gram(k, l);
    double* __restrict slopes = target_.data;
    double squared_violation = 0.0;
    for (Index k = 0; k < r; ++k) {
        slopes[k] = -linear[k];
        for (Index l = 0; l < r; ++l) slopes[k] += gram(k, l) * x[l];
        if (!may_change(k)) continue;
        const double violation = std::min(x[k] * gram(k, k), slopes[k]);
        squared_violation += violation * violation / gram(k, k);
    }
    for (Index sweep = 0; sweep < n_sweeps; ++sweep)
        for (Index k = 0; k < r; ++k) {
            if (!may_change(k)) continue;
            const double step = std::max(-slopes[k] / gram(k, k), -x[k]);
            if (step == 0.0) continue;
            x[k] += step;
            const double* __restrict row = &gram(k, 0);
            for (Index l = 0; l < r; ++l) slopes[l] += step * row[l];
        }
    return squared_violation;
}

// Prior values of the unknowns and the weights of their squared distances from them; both empty if there are none.
struct Prior {
    Matrix<const double> values;
    Matrix<const double> weights;
};

// The minimiser of each row's problem with ridge / 2 |x|^2 added to it.
template <class T, class I>
void ridge_rows(const Entries<T, I>& entries, Matrix<const double> F, double ridge, Matrix<double> X, Part part) {
    RowProblem problem(X.n_columns);
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        if (entries.indptr[i] == entries.indptr[i + 1]) continue;
        accumulate(entries, i, F, problem.gram, &X(i, 0));
        for (Index k = 0; k < X.n_columns; ++k) problem.gram(k, k) += ridge;
        factorize(problem.gram);
        solve_forward(problem.gram, X[i]);
        solve_backward(problem.gram, X[i]);
    }
}

// The minimiser x >= 0 of each row's problem, and the squared violation of its optimality conditions.
template <class T, class I>
void nonnegative_observed_rows(
    const Entries<T, I>& entries, Matrix<const double> F, Vector<const double> shown, Matrix<double> X,
    Vector<double> violations, Part part
) {
    RowProblem problem(X.n_columns);
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        accumulate(entries, i, F, problem.gram, problem.linear.data);
        violations[i] = problem.solve_nonnegative(X[i], shown);
    }
}

// The minimiser of each row's problem over x >= 0 with sum one.
template <class T, class I>
void simplex_observed_rows(const Entries<T, I>& entries, Matrix<const double> F, Matrix<double> X, Part part) {
    RowProblem problem(X.n_columns);
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        accumulate(entries, i, F, problem.gram, problem.linear.data);
        problem.solve_on_simplex(X[i]);
    }
}

// Sweeps of coordinate descent on each row's problem, with a prior unless it is empty, and the violations before them.
template <class T, class I>
void descend_observed_rows(
    const Entries<T, I>& entries, Matrix<const double> F, Matrix<double> X, Index n_sweeps, Matrix<const bool> free,
    const Prior& prior, Vector<double> violations, Part part
) {
    RowProblem problem(X.n_columns);
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        accumulate(entries, i, F, problem.gram, problem.linear.data);
        if (prior.weights.size()) problem.add_prior(&prior.values(i, 0), &prior.weights(i, 0));
        violations[i] = problem.descend(X[i], n_sweeps, free.size() ? &free(i, 0) : nullptr);
    }
}

// The Gram matrix of each row's problem, scaled to a unit diagonal, one below another, and the square roots of the original
// diagonals.
template <class T, class I>
void row_grams(
    const Entries<T, I>& entries, Matrix<const double> F, double* grams, Matrix<double> lengths, Part part
) {
    const Index r = F.n_columns;
    std::vector<double> linear(r);
    for (Index i = part.number; i < lengths.n_rows; i += part.count) {
        const Matrix<double> gram(grams + i * r * r, r, r);
        accumulate(entries, i, F, gram, linear.data());
        scale_to_unit_diagonal(gram, lengths[i]);
    }
}

// One sweep of coordinate descent over x >= 0 for each row of X, whose Gram matrices have a unit diagonal, in place.
inline void sweep_rows_with_grams(Matrix<double> X, Matrix<double> slopes, const double* grams, Part part) {
    const Index r = X.n_columns;
    for (Index i = part.begin(X.n_rows); i < part.end(X.n_rows); ++i) {
        double* __restrict slope = &slopes(i, 0);
        for (Index k = 0; k < r; ++k) {
            const double* __restrict row = grams + (i * r + k) * r;
            if (!(row[k] > 0.0)) continue;
            const double step = std::max(-slope[k], -X(i, k));
            if (step == 0.0) continue;
            X(i, k) += step;
            for (Index l = 0; l < r; ++l) slope[l] += step * row[l];
        }
    }
}

// a . b_j for the observed entries of a row, four at a time: short inner products then overlap.
template <class I, class Use>
void for_each_fit(const double* a, Matrix<const double> B, const I* indices, Index begin, Index end, Use use) {
    const Index r = B.n_columns;
    Index q = begin;
    for (; q + 4 <= end; q += 4) {
        const double *b0 = B.data + position(indices[q]) * r, *b1 = B.data + position(indices[q + 1]) * r;
        const double *b2 = B.data + position(indices[q + 2]) * r, *b3 = B.data + position(indices[q + 3]) * r;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        for (Index k = 0; k < r; ++k) {
            s0 += a[k] * b0[k];
            s1 += a[k] * b1[k];
            s2 += a[k] * b2[k];
            s3 += a[k] * b3[k];
        }
        use(q, s0);
        use(q + 1, s1);
        use(q + 2, s2);
        use(q + 3, s3);
    }
    for (; q < end; ++q) {
        const double* b = B.data + position(indices[q]) * r;
        double fitted = 0.0;
        for (Index k = 0; k < r; ++k) fitted += a[k] * b[k];
        use(q, fitted);
    }
}

// m_ij - a_i . b_j at every observed entry.
template <class T, class I>
void observed_residuals(
    const Entries<T, I>& entries, Matrix<const double> A, Matrix<const double> B, Vector<double> residuals, Part part
) {
    for (Index i = part.begin(A.n_rows); i < part.end(A.n_rows); ++i)
        for_each_fit(
            &A(i, 0), B, entries.indices.data, entries.indptr[i], entries.indptr[i + 1],
            [&](Index q, double fitted) { residuals[q] = double(entries.values[q]) - fitted; }
        );
}

// Add sum_j w_ij (a_i . b_j - m_ij) f_j to each row of `slopes`; without m_ij unless `with_values`.
template <class T, class I>
void observed_slopes(
    const Entries<T, I>& entries, Matrix<const double> A, Matrix<const double> B, Matrix<const double> F,
    bool with_values, Matrix<double> slopes, Part part
) {
    for (Index i = part.begin(slopes.n_rows); i < part.end(slopes.n_rows); ++i) {
        double* __restrict slope = &slopes(i, 0);
        for_each_fit(
            &A(i, 0), B, entries.indices.data, entries.indptr[i], entries.indptr[i + 1],
            [&](Index q, double fitted) {
                const double* __restrict f = &F(entries.indices[q], 0);
                const double factor = entries.weight(q) * (with_values ? fitted - double(entries.values[q]) : fitted);
                for (Index k = 0; k < F.n_columns; ++k) slope[k] += factor * f[k];
            }
        );
    }
}

}  // namespace gsnmf
