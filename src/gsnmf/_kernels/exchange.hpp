// Exchanging columns and rows: scores of all exchanges at once, and short fits of trials.
//
// Sums are made in a fixed number of chunks, in an order that does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "views.hpp"

namespace gsnmf {

constexpr Index n_chunks = 32;
// Rows of weights that descend side by side, so that the innermost loops are long and have no branches.
constexpr Index tile_width = 64;

// Squared length of the positive part of slopes + coefficient * vector, for all slopes and all vectors.
inline void exchange_score_rows(
    Matrix<const double> slopes, Matrix<const double> coefficients, Matrix<const double> vectors, Matrix<double> scores,
    Part part
) {
    const Index n = slopes.n_columns, r = vectors.n_rows;
    for (Index j = part.number; j < slopes.n_rows; j += part.count) {
        const double* row = &slopes(j, 0);
        const double* c = &coefficients(j, 0);
        double* score = &scores(j, 0);
        Index k = 0;
        for (; k + 4 <= r; k += 4) {  // four vectors together read the row of slopes once
            const double *v0 = &vectors(k, 0), *v1 = v0 + n, *v2 = v1 + n, *v3 = v2 + n;
            const double c0 = c[k], c1 = c[k + 1], c2 = c[k + 2], c3 = c[k + 3];
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
            for (Index i = 0; i < n; ++i) {
                const double a0 = positive(row[i] + c0 * v0[i]), a1 = positive(row[i] + c1 * v1[i]);
                const double a2 = positive(row[i] + c2 * v2[i]), a3 = positive(row[i] + c3 * v3[i]);
                s0 += a0 * a0;
                s1 += a1 * a1;
                s2 += a2 * a2;
                s3 += a3 * a3;
            }
            score[k] = s0;
            score[k + 1] = s1;
            score[k + 2] = s2;
            score[k + 3] = s3;
        }
        for (; k < r; ++k) {
            const double* v = &vectors(k, 0);
            double total = 0.0;
            for (Index i = 0; i < n; ++i) {
                const double value = positive(row[i] + c[k] * v[i]);
                total += value * value;
            }
            score[k] = total;
        }
    }
}

// Sum of the squares of the positive entries of each row.
inline void positive_square_rows(Matrix<const double> rows, Vector<double> sums, Part part) {
    for (Index i = part.number; i < rows.n_rows; i += part.count) {
        double total = 0.0;
        for (double entry : rows[i]) {
            const double value = positive(entry);
            total += value * value;
        }
        sums[i] = total;
    }
}

// Several rows of an array side by side, as columns of a tile: one row of the tile per column of the array.
class Tile {
public:
    explicit Tile(Index height) : height_(height), memory_(height * tile_width) {}

    Index height() const { return height_; }
    double* operator[](Index i) { return memory_.data() + i * tile_width; }
    const double* operator[](Index i) const { return memory_.data() + i * tile_width; }

    // Rows from `top` on; zeros fill the tile after the last one.
    void read(Matrix<const double> rows, Index top) {
        const Index n_rows = std::min(tile_width, rows.n_rows - top);
        for (Index row = 0; row < n_rows; ++row) {
            const double* source = &rows(top + row, 0);
            for (Index i = 0; i < height_; ++i) (*this)[i][row] = source[i];
        }
        if (n_rows < tile_width)
            for (Index i = 0; i < height_; ++i) std::fill((*this)[i] + n_rows, (*this)[i] + tile_width, 0.0);
    }

    void write(Matrix<double> rows, Index top) const {
        const Index n_rows = std::min(tile_width, rows.n_rows - top);
        for (Index row = 0; row < n_rows; ++row) {
            double* target = &rows(top + row, 0);
            for (Index i = 0; i < height_; ++i) target[i] = (*this)[i][row];
        }
    }

    // Add the transpose of `coefficients` times `factors`.
    void add_product(Matrix<const double> coefficients, const Tile& factors) {
        for (Index k = 0; k < height_; ++k) {
            double* __restrict target = (*this)[k];
            for (Index i = 0; i < factors.height(); ++i) {
                const double coefficient = coefficients(i, k);
                const double* __restrict factor = factors[i];
                for (Index row = 0; row < tile_width; ++row) target[row] += coefficient * factor[row];
            }
        }
    }

    double dot(const Tile& other) const {
        double total = 0.0;
        for (Index q = 0; q < height_ * tile_width; ++q) total += memory_[q] * other.memory_[q];
        return total;
    }

private:
    Index height_;
    std::vector<double> memory_;
};

// One step of every coordinate of the columns of x, which keeps their slopes up to date.
inline void sweep_tile(Tile& x, Tile& slopes, Matrix<const double> gram) {
    alignas(64) double steps[tile_width];
    for (Index i = 0; i < x.height(); ++i) {
        const double inverse = 1.0 / gram(i, i);
        double* __restrict weights = x[i];
        const double* __restrict own = slopes[i];
        for (Index row = 0; row < tile_width; ++row) {
            const double wanted = -own[row] * inverse, lowest = -weights[row];
            steps[row] = wanted > lowest ? wanted : lowest;
            weights[row] = positive(weights[row] + steps[row]);
        }
        for (Index k = 0; k < x.height(); ++k) {
            const double coefficient = gram(i, k);
            double* __restrict slope = slopes[k];
            for (Index row = 0; row < tile_width; ++row) slope[row] += coefficient * steps[row];
        }
    }
}

// Two sweeps of coordinate descent on x'Gx / 2 + (linear + left right) x for the rows x >= 0 of X, in place; adds
// x . linear, x . (linear + left right) and x . gradient to the sums of each chunk.
inline void descend_trial_chunks(
    Matrix<double> X, Matrix<const double> linear, Matrix<const double> left, Matrix<const double> right,
    Matrix<const double> gram, Matrix<double> sums, Part part
) {
    const Index n = X.n_rows, r = X.n_columns;
    Tile x(r), plain(r), coupled(r), slopes(r), factors(left.n_columns);
    for (Index chunk = part.number; chunk < n_chunks; chunk += part.count)
        for (Index top = chunk * tile_width; top < n; top += n_chunks * tile_width) {
            x.read(X, top);
            plain.read(linear, top);
            factors.read(left, top);
            coupled = plain;
            coupled.add_product(right, factors);
            slopes = coupled;
            slopes.add_product(gram, x);
            sweep_tile(x, slopes, gram);
            sweep_tile(x, slopes, gram);
            x.write(X, top);
            sums(chunk, 0) += x.dot(plain);
            sums(chunk, 1) += x.dot(coupled);
            sums(chunk, 2) += x.dot(slopes);
        }
}

// Add the product of the transpose of A with B, both tall, to `products`: one block of rows, as tall as A is wide, for
// each chunk of rows of A and B.
inline void cross_product_chunks(
    Matrix<const double> A, Matrix<const double> B, Matrix<double> products, Part part
) {
    const Index n = A.n_rows;
    for (Index chunk = part.number; chunk < n_chunks; chunk += part.count)
        for (Index j = chunk * n / n_chunks; j < (chunk + 1) * n / n_chunks; ++j) {
            const double* __restrict source = &B(j, 0);
            for (Index i = 0; i < A.n_columns; ++i) {
                const double factor = A(j, i);
                if (factor == 0.0) continue;
                double* __restrict target = &products(chunk * A.n_columns + i, 0);
                for (Index k = 0; k < B.n_columns; ++k) target[k] += factor * source[k];
            }
        }
}

}  // namespace gsnmf
