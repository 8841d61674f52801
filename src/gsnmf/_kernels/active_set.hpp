// Least squares on a set of columns, and the active-set method that finds the set.
//
// Both nonnegative least squares and the nearest point in a convex hull are problems
//
//     min |t - sum_i x_i r_i|   over x >= 0, and for the hull also sum_i x_i = 1.
//
// Row i of `columns` holds the column r_i, whose entries after entry i are all zero (the columns are those of a triangle);
// `gram` holds the inner products. Working memory is allocated once and reused for many targets.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "views.hpp"

namespace gsnmf {

// A column depends on others if they leave less than this fraction of its squared length.
constexpr double dependent = 1e-14;

struct Columns {
    Matrix<const double> columns;
    Matrix<const double> gram;
    Index size() const { return gram.n_rows; }
};

// The columns that may have a positive weight, in the order in which they entered, and the Cholesky factor of their Gram
// matrix.
class PassiveSet {
public:
    explicit PassiveSet(Index capacity) : capacity_(capacity), lower_(capacity * capacity), indices_(capacity) {}

    Index size() const { return size_; }
    Index operator[](Index a) const { return indices_[a]; }
    void clear() { size_ = 0; }

    // Add column i; false if it depends on the columns in the set.
    bool append(Matrix<const double> gram, Index i) {
        double* __restrict own = row(size_);
        const double* inner = &gram(i, 0);
        double pivot = inner[i];
        for (Index b = 0; b < size_; ++b) {
            const double* __restrict other = row(b);
            double entry = inner[indices_[b]];
            for (Index k = 0; k < b; ++k) entry -= own[k] * other[k];
            entry /= other[b];
            own[b] = entry;
            pivot -= entry * entry;
        }
        if (!(pivot > dependent * inner[i])) return false;
        own[size_] = std::sqrt(pivot);
        indices_[size_++] = i;
        return true;
    }

    // Hold the columns where x is positive; false if they depend on each other.
    bool assign_positive(Vector<const double> x, Matrix<const double> gram) {
        clear();
        for (Index i = 0; i < x.size; ++i)
            if (x[i] > 0.0 && !append(gram, i)) return false;
        return true;
    }

    // Drop the columns without weight; rows of the factor before the first dropped one stay as they are.
    void drop_zeros(Vector<double> x, Matrix<const double> gram) {
        const Index before = size_;
        size_ = 0;
        for (Index a = 0; a < before; ++a) {
            const Index i = indices_[a];
            if (x[i] > 0.0 && a == size_)
                ++size_;
            else if (!(x[i] > 0.0 && append(gram, i)))
                x[i] = 0.0;
        }
    }

    // Solve L y = right in place.
    void solve_lower(double* __restrict right) const {
        for (Index a = 0; a < size_; ++a) {
            const double* __restrict own = row(a);
            double value = right[a];
            for (Index k = 0; k < a; ++k) value -= own[k] * right[k];
            right[a] = value / own[a];
        }
    }

    // Solve L L' z = right in place.
    void solve(double* __restrict right) const {
        solve_lower(right);
        for (Index a = size_ - 1; a >= 0; --a) {
            const double* __restrict own = row(a);
            right[a] /= own[a];
            const double value = right[a];
            for (Index k = 0; k < a; ++k) right[k] -= value * own[k];
        }
    }

    // Go from x towards z until a weight would become negative; true if one became zero on the way.
    bool move(Vector<double> x, const double* z) const {
        double step = 1.0;
        Index leaving = size_;
        for (Index a = 0; a < size_; ++a) {
            const double weight = x[indices_[a]];
            if (z[a] <= 0.0 && weight <= step * (weight - z[a])) {
                step = weight > 0.0 ? weight / (weight - z[a]) : 0.0;
                leaving = a;
            }
        }
        for (Index a = 0; a < size_; ++a) {
            double& weight = x[indices_[a]];
            weight = leaving == size_ ? z[a] : positive(weight + step * (z[a] - weight));
        }
        if (leaving == size_) return false;
        x[indices_[leaving]] = 0.0;
        return true;
    }

private:
    double* row(Index a) { return lower_.data() + a * capacity_; }
    const double* row(Index a) const { return lower_.data() + a * capacity_; }

    Index capacity_;
    Index size_ = 0;
    std::vector<double> lower_;
    std::vector<Index> indices_;
};

// Working memory for one target.
struct Workspace {
    explicit Workspace(Index r)
        : passive(r), slopes(r), residual(r), solution(r), correction(r), sum_direction(r), flags(r) {}

    PassiveSet passive;
    std::vector<double> slopes, residual, solution, correction, sum_direction;
    std::vector<char> flags;
};

// How fast the residual shrinks along column i.
inline double slope(Matrix<const double> columns, Index i, const double* residual) {
    const double* column = &columns(i, 0);
    double value = 0.0;
    for (Index k = 0; k <= i; ++k) value += column[k] * residual[k];
    return value;
}

inline double length(Vector<const double> target) {
    double squared = 0.0;
    for (double entry : target) squared += entry * entry;
    return std::sqrt(squared);
}

// Slopes below this, along columns of unit length, are rounding.
inline double slope_threshold(Vector<const double> target) { return 1e-15 * target.size * length(target); }

// The residual of the target after the columns in the set, with coefficients z.
inline void subtract(Matrix<const double> columns, Vector<const double> target, const double* z, Workspace& work) {
    double* __restrict residual = work.residual.data();
    std::copy(target.begin(), target.end(), residual);
    for (Index a = 0; a < work.passive.size(); ++a) {
        const Index i = work.passive[a];
        const double* __restrict column = &columns(i, 0);
        const double coefficient = z[a];
        for (Index k = 0; k <= i; ++k) residual[k] -= coefficient * column[k];
    }
}

// Coefficients of any sign of the columns in the set, and the residual; with `with_sum` the coefficients add up to one.
//
// The solution from the Gram matrix is refined with the columns themselves until the correction is mere rounding. It is
// then as accurate as one from a QR decomposition.
inline void least_squares(Matrix<const double> columns, Vector<const double> target, bool with_sum, Workspace& work) {
    constexpr int n_refinements = 6;
    const PassiveSet& passive = work.passive;
    const Index size = passive.size();
    double* z = work.solution.data();
    double* correction = work.correction.data();
    double* direction = work.sum_direction.data();
    std::copy(target.begin(), target.end(), work.residual.begin());
    std::fill_n(z, size, 0.0);
    double weight = 0.0, total = 0.0;
    if (with_sum) {
        std::fill_n(direction, size, 1.0);
        passive.solve(direction);
        for (Index a = 0; a < size; ++a) weight += direction[a];
    }
    for (int round = 0; round < n_refinements; ++round) {
        for (Index a = 0; a < size; ++a) correction[a] = slope(columns, passive[a], work.residual.data());
        passive.solve(correction);
        if (with_sum) {
            double shift = 1.0 - total;
            for (Index a = 0; a < size; ++a) shift -= correction[a];
            shift /= weight;
            for (Index a = 0; a < size; ++a) correction[a] += shift * direction[a];
        }
        double largest = 0.0, change = 0.0;
        total = 0.0;
        for (Index a = 0; a < size; ++a) {
            z[a] += correction[a];
            total += z[a];
            largest = std::max(largest, std::abs(z[a]));
            change = std::max(change, std::abs(correction[a]));
        }
        subtract(columns, target, z, work);
        if (!(change > 1e-12 * largest)) break;
    }
}

// Turn x in place into the solution, and return the slope that all columns with positive weight share.
//
// The method of Lawson and Hanson or, with `with_sum`, of Wolfe: the column with the steepest slope enters, the problem is
// solved on the set, and weights that become negative on the way leave. It ends when no slope exceeds the common one by
// more than `threshold`, after finitely many steps.
//
// On entry x solves the problem on the columns where it is positive, which `work.passive` holds. On return the residual is
// in `work`.
inline double active_set(
    Vector<double> x, const Columns& problem, Vector<const double> target, double threshold, bool with_sum, Workspace& work
) {
    PassiveSet& passive = work.passive;
    std::fill(work.flags.begin(), work.flags.end(), char(0));
    char* blocked = work.flags.data();
    for (Index a = 0; a < passive.size(); ++a) work.solution[a] = x[passive[a]];
    subtract(problem.columns, target, work.solution.data(), work);
    double level = 0.0;
    for (Index step = 0; step < 10 * x.size + 10; ++step) {
        level = 0.0;
        for (Index i = 0; i < x.size; ++i) {
            work.slopes[i] = slope(problem.columns, i, work.residual.data());
            if (with_sum) level += x[i] * work.slopes[i];
        }
        Index entering = x.size;
        double steepest = level + threshold;
        for (Index i = 0; i < x.size; ++i)
            if (work.slopes[i] > steepest && x[i] == 0.0 && !blocked[i]) {
                entering = i;
                steepest = work.slopes[i];
            }
        if (entering == x.size) break;
        if (!passive.append(problem.gram, entering)) {  // dependent on the others: its slope is only rounding
            blocked[entering] = 1;
            continue;
        }
        std::fill(work.flags.begin(), work.flags.end(), char(0));
        blocked[entering] = 1;  // matters only if it leaves at once: then its slope was rounding again
        while (true) {
            least_squares(problem.columns, target, with_sum, work);
            if (!passive.move(x, work.solution.data())) break;
            passive.drop_zeros(x, problem.gram);
        }
    }
    return level;
}

}  // namespace gsnmf
