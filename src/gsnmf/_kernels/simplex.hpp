// Weights on the unit simplex: projections, a fast gradient method, and exact least squares by the active-set method.
#pragma once

#include <limits>
#include <utility>

#include "active_set.hpp"
#include "coordinate_descent.hpp"

namespace gsnmf {

// Project the first `width` entries of each row of a block, column by column, on {x >= 0, sum(x) <= 1}, or with `exact` on
// {x >= 0, sum(x) = 1}, in place. `stride` is the distance between rows.
//
// Newton's method on sum(max(0, x - t)) = 1, convex and decreasing in t, for each column: a few passes, no sort.
template <class T>
void project_block(T* block, Index r, Index stride, Index width, bool exact) {
    alignas(64) T shift[block_width], previous[block_width], total[block_width], active[block_width];
    std::fill_n(shift, width, exact ? -std::numeric_limits<T>::infinity() : T(0));
    std::fill_n(previous, width, T(r + 1));
    bool moving = true;
    while (moving) {
        std::fill_n(total, width, T(0));
        std::fill_n(active, width, T(0));
        for (Index i = 0; i < r; ++i) {
            const T* __restrict row = block + i * stride;
            for (Index j = 0; j < width; ++j) {
                const bool above = row[j] > shift[j];
                total[j] += above ? row[j] : T(0);
                active[j] += above ? T(1) : T(0);
            }
        }
        moving = false;
        for (Index j = 0; j < width; ++j)
            if (T(0) < active[j] && active[j] < previous[j]) {  // otherwise the entries above the shift are the same: done
                previous[j] = active[j];
                const T solution = (total[j] - T(1)) / active[j];
                if (solution > shift[j]) {  // always, unless the sum is below one and may stay so
                    shift[j] = solution;
                    moving = true;
                }
            }
    }
    for (Index i = 0; i < r; ++i) {
        T* __restrict row = block + i * stride;
        for (Index j = 0; j < width; ++j) row[j] = positive(row[j] - shift[j]);
    }
}

template <class T>
void project_on_simplex_blocks(Matrix<T> X, bool exact, Part part) {
    const Index n = X.n_columns;
    for (Index start = part.number * block_width; start < n; start += part.count * block_width)
        project_block(X.data + start, X.n_rows, n, std::min(block_width, n - start), exact);
}

// A block of columns and its image under G.
template <class T>
struct BlockWithImage {
    BlockWithImage(Index r, Index width) : x(r * width), image(r * width) {}

    void update_image(Matrix<const T> gram, Index width) {
        std::fill(image.begin(), image.end(), T(0));
        for (Index i = 0; i < gram.n_rows; ++i)
            add_combination(image.data() + i * width, &gram(i, 0), x.data(), gram.n_rows, width, width);
    }

    std::vector<T> x, image;
};

// Nesterov's projected gradient method on x'Gx / 2 - t'x over the simplex, for one block of columns of X, in place. A step
// that would raise the objective is repeated without momentum, so the objective never rises.
template <class T>
void descend_block_on_simplex(
    Matrix<T> X, Matrix<const T> target, Matrix<const T> gram, double step_length, bool exact, Index max_steps,
    double tolerance, Index start, Index width
) {
    const Index r = X.n_rows, size = r * width;
    BlockWithImage<T> current(r, width), fresh(r, width);
    std::vector<T> goal(size);
    for (Index i = 0; i < r; ++i) {
        std::copy_n(&X(i, start), width, current.x.data() + i * width);
        std::copy_n(&target(i, start), width, goal.data() + i * width);
    }
    current.update_image(gram, width);
    BlockWithImage<T> previous = current;
    double speed = 1.0, first = 0.0;
    for (Index step = 0; step < max_steps; ++step) {
        double next_speed = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * speed * speed));
        double momentum = (speed - 1.0) / next_speed, rise, moved;
        while (true) {
            const T length = T(step_length), factor = T(momentum);
            const T *x = current.x.data(), *image = current.image.data();
            const T *before = previous.x.data(), *image_before = previous.image.data();
            T* __restrict next = fresh.x.data();
            for (Index q = 0; q < size; ++q) {
                const T slope = image[q] + factor * (image[q] - image_before[q]) - goal[q];
                next[q] = x[q] + factor * (x[q] - before[q]) - length * slope;
            }
            project_block(next, r, width, width, exact);
            fresh.update_image(gram, width);
            rise = moved = 0.0;
            for (Index q = 0; q < size; ++q) {
                const T change = fresh.x[q] - x[q];
                rise += change * (T(0.5) * (image[q] + fresh.image[q]) - goal[q]);
                moved += change * change;
            }
            if (rise < 0.0 || momentum == 0.0) break;
            momentum = 0.0;
            next_speed = 1.0;
        }
        if (!(rise < 0.0)) break;  // not even the gradient step lowers the objective: the solution, up to rounding
        std::swap(previous, current);
        std::swap(current, fresh);
        speed = next_speed;
        if (step == 0)
            first = moved;
        else if (moved <= tolerance * tolerance * first)
            break;
    }
    for (Index i = 0; i < r; ++i) std::copy_n(current.x.data() + i * width, width, &X(i, start));
}

template <class T>
void descend_on_simplex_blocks(
    Matrix<T> X, Matrix<const T> target, Matrix<const T> gram, double step_length, bool exact, Index max_steps,
    double tolerance, Part part
) {
    const Index n = X.n_columns;
    for (Index start = part.number * block_width; start < n; start += part.count * block_width)
        descend_block_on_simplex(
            X, target, gram, step_length, exact, max_steps, tolerance, start, std::min(block_width, n - start)
        );
}

// Turn each row of X in place into the weights of the point nearest to its target in the convex hull of points, of which
// the first is the origin. On entry each row solves the problem for the points with positive weights.
inline void project_on_hull_rows(
    Matrix<double> X, Matrix<double> residuals, Vector<double> multipliers, const Columns& points, double longest,
    Matrix<const double> targets, Part part
) {
    const Index r = X.n_columns;
    Workspace work(r);
    for (Index j = part.number; j < X.n_rows; j += part.count) {
        const Vector<double> x = X[j];
        if (!work.passive.assign_positive(x, points.gram)) {  // begin with the origin alone
            std::fill(x.begin(), x.end(), 0.0);
            x[0] = 1.0;
            work.passive.clear();
            work.passive.append(points.gram, 0);
        }
        const double threshold = slope_threshold(targets[j]) * longest;
        multipliers[j] = active_set(x, points, targets[j], threshold, true, work);
        std::copy(work.residual.begin(), work.residual.end(), &residuals(j, 0));
    }
}

inline double simplex_threshold(Vector<const double> target, double longest) {
    return 1e-14 * length(target) * longest;  // slopes below this, relative to target and columns, are rounding
}

// The active-set method with sum one for one target, from the nearest column. On entry x is zero.
inline void simplex_from_nearest(
    Vector<double> x, const Columns& points, double longest, Vector<const double> target, Workspace& work
) {
    Index nearest = 0;
    double best = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < x.size; ++i) {
        const double value = slope(points.columns, i, target.data) - 0.5 * points.gram(i, i);
        if (value > best) {
            nearest = i;
            best = value;
        }
    }
    x[nearest] = 1.0;  // a vertex is the solution on itself
    work.passive.clear();
    work.passive.append(points.gram, nearest);
    active_set(x, points, target, simplex_threshold(target, longest), true, work);
}

// The active-set method with sum one from the positive entries of x; false, with x zero, if there are none or they depend
// on each other. Columns without weight leave until all that are left have one: then x is the solution on them.
inline bool simplex_from_guess(
    Vector<double> x, const Columns& points, double longest, Vector<const double> target, Workspace& work
) {
    if (!work.passive.assign_positive(x, points.gram)) work.passive.clear();
    while (work.passive.size() > 0) {
        least_squares(points.columns, target, true, work);
        bool all_positive = true;
        for (Index a = 0; a < work.passive.size(); ++a) {
            x[work.passive[a]] = positive(work.solution[a]);
            all_positive = all_positive && work.solution[a] > 0.0;
        }
        if (all_positive) {
            active_set(x, points, target, simplex_threshold(target, longest), true, work);
            return true;
        }
        work.passive.drop_zeros(x, points.gram);
    }
    std::fill(x.begin(), x.end(), 0.0);
    return false;
}

// Weights >= 0 with sum one that fit each target best; positive entries of X mark the first guess.
inline void simplex_least_squares_rows(
    Matrix<double> X, const Columns& points, double longest, Matrix<const double> targets, Part part
) {
    Workspace work(X.n_columns);
    for (Index j = part.number; j < X.n_rows; j += part.count)
        if (!simplex_from_guess(X[j], points, longest, targets[j], work))
            simplex_from_nearest(X[j], points, longest, targets[j], work);
}

}  // namespace gsnmf
