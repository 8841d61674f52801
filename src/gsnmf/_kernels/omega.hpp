// Rows of the convex model: the projection on its feasible set Omega, shrinking of group norms, and dual scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "views.hpp"

namespace gsnmf {

// Project one row on {0 <= p_i <= 1, 0 <= w_i p_j <= w_j p_i}, in place.
//
// In terms of scale = t / w_i, with t the diagonal entry, the equation of the optimal t needs no division inside the loop:
// scale = (w_i x_i + sum_A w_j x_j) / (w_i^2 + sum_A w_j^2), A = {j : x_j > w_j scale}. Newton steps only shrink A.
template <class T>
void project_row_on_omega(Vector<T> x, Vector<const T> weights, Index i) {
    const T own = weights[i];
    if (own == T(0)) {
        std::fill(x.begin(), x.end(), T(0));
        return;
    }
    const T diagonal = x[i];
    x[i] = T(0);  // never active in the sums below, which start from its own term
    T entry = positive(diagonal), scale = entry / own;
    Index previous = x.size + 1;
    while (entry < T(1)) {
        double numerator = double(own) * diagonal, denominator = double(own) * own;
        Index active = 0;
        for (Index j = 0; j < x.size; ++j) {
            const bool above = x[j] > weights[j] * scale;
            numerator += above ? double(weights[j]) * x[j] : 0.0;
            denominator += above ? double(weights[j]) * weights[j] : 0.0;
            active += above;
        }
        if (active >= previous || active == 0) break;
        previous = active;
        scale = T(positive(numerator) / denominator);
        entry = own * scale;
    }
    if (entry >= T(1)) {
        entry = T(1);
        scale = T(1) / own;
    }
    for (Index j = 0; j < x.size; ++j) {
        const T bound = weights[j] * scale, value = positive(x[j]);
        x[j] = value > bound ? bound : value;
    }
    x[i] = entry;
}

template <class T>
void project_rows_on_omega(
    Matrix<const T> X, Vector<const T> weights, Vector<const Index> indices, Matrix<T> out, Part part
) {
    for (Index a = part.number; a < X.n_rows; a += part.count) {
        if (&out(a, 0) != &X(a, 0)) std::copy_n(&X(a, 0), X.n_columns, &out(a, 0));
        project_row_on_omega(out[a], weights, indices[a]);
    }
}

// Minimise |z - x|^2 / 2 + threshold |z|_2 over z >= 0 for each row x, in place.
template <class T>
void shrink_euclidean_rows(Matrix<T> X, Vector<const T> thresholds, Part part) {
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        const Vector<T> x = X[i];
        double squared = 0.0;
        for (T& entry : x) {
            entry = positive(entry);
            squared += double(entry) * entry;
        }
        const double norm = std::sqrt(squared);
        const T factor = norm > thresholds[i] ? T(1.0 - thresholds[i] / norm) : T(0);
        for (T& entry : x) entry *= factor;
    }
}

// Minimise |z - x|^2 / 2 + threshold max(z) over z >= 0 for each row x, in place: cut at the level that removes threshold.
template <class T>
void shrink_maximum_rows(Matrix<T> X, Vector<const T> thresholds, Part part) {
    for (Index i = part.number; i < X.n_rows; i += part.count) {
        const Vector<T> x = X[i];
        double total = 0.0;
        for (T& entry : x) {
            entry = positive(entry);
            total += entry;
        }
        if (total <= thresholds[i]) {
            std::fill(x.begin(), x.end(), T(0));
            continue;
        }
        double level = 0.0;
        for (Index step = 0; step < x.size; ++step) {  // Newton on a convex, decreasing, piecewise linear function
            double above = 0.0;
            Index count = 0;
            for (T entry : x) {
                above += entry > level ? double(entry) : 0.0;
                count += entry > level;
            }
            if (count == 0) break;  // the level is the maximum, to rounding
            const double better = (above - thresholds[i]) / count;
            if (better <= level) break;
            level = better;
        }
        for (T& entry : x) entry = entry > level ? T(level) : entry;
    }
}

// Dual norm of the trace penalty for each row s of slopes: s_i + sum_{j != i} max(0, s_j) w_j / w_i.
template <class T>
void trace_score_rows(
    Matrix<const T> slopes, Vector<const Index> indices, Vector<const T> weights, Vector<double> scores, Part part
) {
    for (Index i = part.number; i < slopes.n_rows; i += part.count) {
        const T* row = &slopes(i, 0);
        double total = 0.0;
        for (Index j = 0; j < slopes.n_columns; ++j) total += weights[j] * positive(row[j]);
        const double own = weights[indices[i]], diagonal = row[indices[i]];
        scores[i] = own > 0.0 ? (total - own * positive(diagonal)) / own + diagonal
                              : -std::numeric_limits<double>::infinity();
    }
}

// Dual norms of the group penalties for each row of slopes: Euclidean norm, or sum, of the positive part.
template <class T>
void group_score_rows(Matrix<const T> slopes, bool euclidean, Vector<double> scores, Part part) {
    for (Index i = part.number; i < slopes.n_rows; i += part.count) {
        double total = 0.0;
        for (T entry : slopes[i]) {
            const double value = positive(entry);
            total += euclidean ? value * value : value;
        }
        scores[i] = euclidean ? std::sqrt(total) : total;
    }
}

}  // namespace gsnmf
