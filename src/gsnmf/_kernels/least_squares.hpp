// Nonnegative least squares for many targets with the same few columns, and the curvature at the solutions.
#pragma once

#include "active_set.hpp"

namespace gsnmf {

// A few sweeps of coordinate descent from zero on x G x / 2 - x . linear; the cost follows the entries that change.
inline void guess_by_descent(
    Vector<double> x, Matrix<const double> gram, Vector<const double> linear, Workspace& work
) {
    constexpr int n_sweeps = 3;
    double* __restrict slopes = work.slopes.data();
    std::copy(linear.begin(), linear.end(), slopes);
    for (int sweep = 0; sweep < n_sweeps; ++sweep)
        for (Index i = 0; i < x.size; ++i) {
            const double step = std::max(slopes[i], -x[i]);
            if (step == 0.0) continue;
            x[i] += step;
            const double* __restrict row = &gram(i, 0);
            for (Index k = 0; k < x.size; ++k) slopes[k] -= step * row[k];
        }
}

// Solution z on the passive set from the products of the target with the columns, and the slopes at z.
inline void gram_solution(Matrix<const double> gram, Vector<const double> linear, Workspace& work) {
    double* z = work.solution.data();
    double* __restrict slopes = work.slopes.data();
    for (Index a = 0; a < work.passive.size(); ++a) z[a] = linear[work.passive[a]];
    work.passive.solve(z);
    std::copy(linear.begin(), linear.end(), slopes);
    for (Index a = 0; a < work.passive.size(); ++a) {
        const double* __restrict row = &gram(work.passive[a], 0);
        const double weight = z[a];
        for (Index k = 0; k < linear.size; ++k) slopes[k] -= weight * row[k];
    }
}

// Block principal pivoting (Kim and Park 2011) from the positive entries of x; false if it met dependent columns.
//
// `right` is the target or, with `by_gram`, its products with the columns; `columns` is then not read.
inline bool principal_pivoting(
    Vector<double> x, const Columns& problem, Vector<const double> right, bool by_gram, Workspace& work
) {
    constexpr int chances_in_a_row = 3;  // how often a full exchange may fail to lower the number of wrong indices
    const Index r = x.size;
    char* passive = work.flags.data();
    for (Index i = 0; i < r; ++i) passive[i] = x[i] > 0.0;
    const double threshold = slope_threshold(right);
    const auto wrong = [&](Index i) { return passive[i] ? x[i] < 0.0 : work.slopes[i] > threshold; };
    Index fewest = r + 1;
    int chances = chances_in_a_row;
    for (Index round = 0; round < 20 * r + 20; ++round) {
        work.passive.clear();
        for (Index i = 0; i < r; ++i)
            if (passive[i] && !work.passive.append(problem.gram, i)) return false;
        if (by_gram) {
            gram_solution(problem.gram, right, work);
        } else {
            least_squares(problem.columns, right, false, work);
            for (Index i = 0; i < r; ++i)
                if (!passive[i]) work.slopes[i] = slope(problem.columns, i, work.residual.data());
        }
        std::fill(x.begin(), x.end(), 0.0);
        for (Index a = 0; a < work.passive.size(); ++a) x[work.passive[a]] = work.solution[a];
        Index n_wrong = 0;
        for (Index i = 0; i < r; ++i) n_wrong += wrong(i);
        if (n_wrong == 0) return true;
        chances = n_wrong < fewest ? chances_in_a_row : chances - 1;
        fewest = std::min(fewest, n_wrong);
        for (Index i = r - 1; i >= 0; --i)
            if (wrong(i)) {
                passive[i] = !passive[i];
                if (chances < 0) break;  // from now on one index at a time, which ends after finitely many rounds
            }
    }
    return false;
}

// Block principal pivoting for the rows of X, in place; `failed` marks the rows at which it met dependent columns.
inline void pivot_rows(
    Matrix<double> X, const Columns& problem, Matrix<const double> right, bool by_gram, Vector<unsigned char> failed,
    Part part
) {
    Workspace work(X.n_columns);
    for (Index j = part.number; j < X.n_rows; j += part.count) {
        if (by_gram) guess_by_descent(X[j], problem.gram, right[j], work);
        failed[j] = !principal_pivoting(X[j], problem, right[j], by_gram, work);
    }
}

// The active-set method of Lawson and Hanson from zero, for the rows of X.
inline void active_set_rows(Matrix<double> X, const Columns& problem, Matrix<const double> targets, Part part) {
    Workspace work(X.n_columns);
    for (Index j = part.number; j < X.n_rows; j += part.count) {
        const Vector<double> x = X[j];
        std::fill(x.begin(), x.end(), 0.0);
        work.passive.clear();
        active_set(x, problem, targets[j], slope_threshold(targets[j]), false, work);
    }
}

// Upper triangle of the inverse Gram matrix of the positive entries of each row; zero where they depend on each other.
inline void passive_inverse_rows(
    Matrix<const double> X, Matrix<const double> gram, Matrix<double> inverses, Part part
) {
    const Index r = X.n_columns;
    PassiveSet passive(r);
    std::vector<double> right(r);
    for (Index j = part.number; j < X.n_rows; j += part.count) {
        if (!passive.assign_positive(X[j], gram)) continue;
        for (Index a = 0; a < passive.size(); ++a) {
            std::fill(right.begin(), right.end(), 0.0);
            right[a] = 1.0;
            passive.solve(right.data());
            const Index i = passive[a], begin = i * r - i * (i - 1) / 2 - i;  // where row i of the triangle would begin
            for (Index b = a; b < passive.size(); ++b) inverses(j, begin + passive[b]) = right[b];
        }
    }
}

}  // namespace gsnmf
