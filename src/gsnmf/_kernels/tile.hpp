// Many short problems side by side: rows of an array become columns of a tile, so that the innermost loops are long and
// have no branches.
#pragma once

#include <algorithm>
#include <vector>

#include "views.hpp"

namespace gsnmf {

// Add a combination of rows to a target of `width` entries. Four rows together read and write the target once.
template <class T>
inline void add_combination(
    T* __restrict target, const T* coefficients, const T* rows, Index n_rows, Index stride, Index width
) {
    Index k = 0;
    for (; k + 4 <= n_rows; k += 4) {
        const T c0 = coefficients[k], c1 = coefficients[k + 1], c2 = coefficients[k + 2], c3 = coefficients[k + 3];
        const T* __restrict r0 = rows + k * stride;
        const T *__restrict r1 = r0 + stride, *__restrict r2 = r1 + stride, *__restrict r3 = r2 + stride;
        for (Index j = 0; j < width; ++j) target[j] += c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j];
    }
    for (; k < n_rows; ++k) {
        const T coefficient = coefficients[k];
        const T* __restrict row = rows + k * stride;
        for (Index j = 0; j < width; ++j) target[j] += coefficient * row[j];
    }
}

// Rows of an array that are worked on side by side.
constexpr Index tile_width = 64;

// Some rows of an array as columns: one row of the tile per column of the array.
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
            const double* source = rows.data + (top + row) * rows.n_columns;
            for (Index i = 0; i < height_; ++i) (*this)[i][row] = source[i];
        }
        if (n_rows < tile_width)
            for (Index i = 0; i < height_; ++i) std::fill((*this)[i] + n_rows, (*this)[i] + tile_width, 0.0);
    }

    void write(Matrix<double> rows, Index top) const {
        const Index n_rows = std::min(tile_width, rows.n_rows - top);
        for (Index row = 0; row < n_rows; ++row) {
            double* target = rows.data + (top + row) * rows.n_columns;
            for (Index i = 0; i < height_; ++i) target[i] = (*this)[i][row];
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

// offset + sum_k coefficients[k] x[k], for one row of a tile.
inline void combine(double* __restrict target, const double* offset, const double* coefficients, const Tile& x) {
    std::copy_n(offset, tile_width, target);
    add_combination(target, coefficients, x[0], x.height(), tile_width, tile_width);
}

// One step of coordinate descent on x'Gx / 2 + x . linear over x >= 0 for every coordinate of the columns of x.
inline void sweep_tile(Tile& x, const Tile& linear, Matrix<const double> gram) {
    alignas(64) double slopes[tile_width];
    for (Index i = 0; i < x.height(); ++i) {
        combine(slopes, linear[i], &gram(i, 0), x);
        const double inverse = 1.0 / gram(i, i);
        double* __restrict weights = x[i];
        for (Index row = 0; row < tile_width; ++row) weights[row] = positive(weights[row] - slopes[row] * inverse);
    }
}

}  // namespace gsnmf
