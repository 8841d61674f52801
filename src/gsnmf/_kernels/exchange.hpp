// Exchanging columns and rows: scores of all exchanges at once, and short fits of trials.
//
// Sums are made in a fixed number of chunks, in an order that does not depend on the number of threads.
#pragma once

#include "tile.hpp"

namespace gsnmf {

constexpr Index n_chunks = 32;

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

// Two sweeps of coordinate descent on x'Gx / 2 + (linear + left right) x for the rows x >= 0 of X, in place; adds
// x . linear, x . (linear + left right) and x . gradient to the sums of each chunk.
inline void descend_trial_chunks(
    Matrix<double> X, Matrix<const double> linear, Matrix<const double> left, Matrix<const double> right,
    Matrix<const double> gram, Matrix<double> sums, Part part
) {
    const Index n = X.n_rows, r = X.n_columns, q = left.n_columns;
    Tile x(r), plain(r), coupled(r), factors(q);
    std::vector<double> column(std::max(q, r));
    alignas(64) double slopes[tile_width];
    for (Index chunk = part.number; chunk < n_chunks; chunk += part.count)
        for (Index top = chunk * tile_width; top < n; top += n_chunks * tile_width) {
            x.read(X, top);
            plain.read(linear, top);
            factors.read(left, top);
            for (Index i = 0; i < r; ++i) {
                for (Index k = 0; k < q; ++k) column[k] = right(k, i);
                combine(coupled[i], plain[i], column.data(), factors);
            }
            sweep_tile(x, coupled, gram);
            sweep_tile(x, coupled, gram);
            x.write(X, top);
            sums(chunk, 0) += x.dot(plain);
            sums(chunk, 1) += x.dot(coupled);
            for (Index i = 0; i < r; ++i) {
                combine(slopes, coupled[i], &gram(i, 0), x);
                double total = 0.0;
                for (Index row = 0; row < tile_width; ++row) total += x[i][row] * slopes[row];
                sums(chunk, 2) += total;
            }
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
