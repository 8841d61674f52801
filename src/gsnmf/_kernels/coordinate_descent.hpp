// Coordinate descent for many nonnegative problems that share a Gram matrix: one per row, or one per column.
#pragma once

#include "tile.hpp"

namespace gsnmf {

// Columns that are updated together: enough to fill vector registers, few enough for the cache.
constexpr Index block_width = 128;

// One sweep on x G x / 2 + x . linear over x >= 0 for each row x of X, in place.
inline void sweep_rows(Matrix<double> X, Matrix<const double> linear, Matrix<const double> gram, Part part) {
    Tile x(X.n_columns), offsets(X.n_columns);
    for (Index top = part.number * tile_width; top < X.n_rows; top += part.count * tile_width) {
        x.read(X, top);
        offsets.read(linear, top);
        sweep_tile(x, offsets, gram);
        x.write(X, top);
    }
}

// Sweeps on x'Gx / 2 - t'x over x >= 0 for columns x of X and t of `target`, in place, until a sweep moves a block of
// columns by less than `tolerance` times its first sweep, in the norm of the diagonal of G.
//
// The same coordinate of a whole block is updated at once: the processor then adds vectors instead of computing one short
// inner product after another.
template <class T>
void descend_blocks(
    Matrix<T> X, Matrix<const T> target, Matrix<const T> gram, Index max_sweeps, double tolerance, Part part
) {
    const Index n = X.n_columns, r = X.n_rows;
    std::vector<T> memory(r * block_width);
    const Matrix<T> block(memory.data(), r, block_width);
    alignas(64) T slope[block_width];
    for (Index start = part.number * block_width; start < n; start += part.count * block_width) {
        const Index width = std::min(block_width, n - start);
        for (Index i = 0; i < r; ++i) {
            std::copy_n(&X(i, start), width, &block(i, 0));
            std::fill_n(&block(i, 0) + width, block_width - width, T(0));
        }
        double first = 0.0;
        for (Index sweep = 0; sweep < max_sweeps; ++sweep) {
            double change = 0.0;
            for (Index i = 0; i < r; ++i) {
                const T curvature = gram(i, i);
                if (curvature <= T(0)) continue;
                std::fill_n(slope, block_width, T(0));
                add_combination(slope, &gram(i, 0), block.data, r, block_width, block_width);
                T* __restrict x = &block(i, 0);
                const T* __restrict goal = &target(i, start);
                double moved = 0.0;
                for (Index j = 0; j < width; ++j) {
                    const T wanted = (goal[j] - slope[j]) / curvature, lowest = -x[j];
                    const T step = wanted > lowest ? wanted : lowest;
                    x[j] = positive(x[j] + step);
                    moved += double(step) * step;
                }
                change += moved * curvature;
            }
            if (sweep == 0)
                first = change;
            else if (change <= tolerance * tolerance * first)
                break;
        }
        for (Index i = 0; i < r; ++i) std::copy_n(&block(i, 0), width, &X(i, start));
    }
}

}  // namespace gsnmf
