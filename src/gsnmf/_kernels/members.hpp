// A few members that explain a target: nonnegative least squares on them, and the best single change.
//
// A target t, of which only the products b = M't are known, is explained by q columns of M with weights x >= 0. At the best
// weights the squared distance falls from t't by max_x 2 b'x - x'Gx = b'x*, where G = M'M. Everything here needs the rows of
// G at the members, the diagonal of G, and b.
#pragma once

#include "active_set.hpp"

namespace gsnmf {

// Working memory for at most `capacity` members.
struct MemberWorkspace {
    explicit MemberWorkspace(Index capacity) : passive(capacity), solution(capacity), blocked(capacity) {}

    PassiveSet passive;
    std::vector<double> solution;
    std::vector<char> blocked;
};

// Weights x >= 0 that maximise 2 b'x - x'Gx, in place, by the active-set method of Lawson and Hanson; returns the maximum.
inline double member_weights(
    Matrix<const double> gram, Vector<const double> linear, Vector<double> x, MemberWorkspace& work
) {
    constexpr double flat = 1e-14;  // slopes below this fraction of the largest product are rounding
    const Index q = x.size;
    PassiveSet& passive = work.passive;
    passive.clear();
    double largest = 0.0;
    for (Index i = 0; i < q; ++i) {
        x[i] = 0.0;
        work.blocked[i] = 0;
        largest = std::max(largest, std::abs(linear[i]) / std::sqrt(gram(i, i)));
    }
    for (Index step = 0; step < 10 * q + 10; ++step) {
        Index entering = -1;
        double steepest = flat * largest;
        for (Index i = 0; i < q; ++i) {
            if (x[i] > 0.0 || work.blocked[i]) continue;
            double value = linear[i];
            for (Index a = 0; a < passive.size(); ++a) value -= gram(i, passive[a]) * x[passive[a]];
            value /= std::sqrt(gram(i, i));
            if (value > steepest) {
                entering = i;
                steepest = value;
            }
        }
        if (entering < 0) break;
        if (!passive.append(gram, entering)) {
            work.blocked[entering] = 1;
            continue;
        }
        while (true) {
            for (Index a = 0; a < passive.size(); ++a) work.solution[a] = linear[passive[a]];
            passive.solve(work.solution.data());
            if (!passive.move(x, work.solution.data())) break;
            if (x[entering] == 0.0) work.blocked[entering] = 1;
            passive.drop_zeros(x, gram);
        }
    }
    double explained = 0.0;
    for (Index i = 0; i < q; ++i) explained += linear[i] * x[i];
    return explained;
}

// What a change of members is looked for in: rows of G at the members, the diagonal of G, b, and which columns are allowed.
struct MemberSearch {
    Vector<const Index> members;
    Matrix<const double> rows;
    Vector<const double> diagonal;
    Vector<const double> linear;
    Vector<const bool> allowed;
};

struct MemberChange {
    Index position;  // in the list of members; its length for an addition, -1 for no change
    Index index;
    double explained;
};

// Improve `best` by the column that explains most in place of the member at `slot`, or in addition if `slot` is the number
// of members.
//
// If the weights of the kept members K could be negative, a change would explain b_K' G_KK^-1 b_K + max(0, s_j)^2 / d_j,
// where s_j and d_j are what K leaves of b_j and of the diagonal. This is an upper bound, so the exact problem is solved
// only where the bound exceeds the best change so far.
inline void improve_at_slot(const MemberSearch& search, Index slot, Index n_kept, MemberChange& best) {
    const Index q = n_kept;
    const auto kept = [slot](Index a) { return a < slot ? a : a + 1; };
    std::vector<double> gram_memory((q + 1) * (q + 1)), right(q + 1), x(q + 1), half(q), across(q), lower(q * q);
    const Matrix<double> gram(gram_memory.data(), q + 1, q + 1);
    MemberWorkspace work(q + 1);
    for (Index a = 0; a < q; ++a) {
        right[a] = search.linear[search.members[kept(a)]];
        for (Index c = 0; c < q; ++c) gram(a, c) = search.rows(kept(a), search.members[kept(c)]);
    }
    double before = 0.0;
    for (Index a = 0; a < q; ++a) {  // Cholesky factor of the kept members, and half the way to their weights
        double pivot = gram(a, a), value = right[a];
        for (Index c = 0; c < a; ++c) {
            double entry = gram(a, c);
            for (Index k = 0; k < c; ++k) entry -= lower[a * q + k] * lower[c * q + k];
            entry /= lower[c * q + c];
            lower[a * q + c] = entry;
            pivot -= entry * entry;
            value -= entry * half[c];
        }
        if (!(pivot > dependent * gram(a, a))) return;
        lower[a * q + a] = std::sqrt(pivot);
        half[a] = value / lower[a * q + a];
        before += half[a] * half[a];
    }
    for (Index j = 0; j < search.linear.size; ++j) {
        const double squared_length = search.diagonal[j];
        if (!search.allowed[j] || squared_length <= 0.0) continue;
        double left_slope = search.linear[j], left = squared_length;
        for (Index a = 0; a < q; ++a) {
            double entry = search.rows(kept(a), j);
            for (Index c = 0; c < a; ++c) entry -= lower[a * q + c] * across[c];
            entry /= lower[a * q + a];
            across[a] = entry;
            left_slope -= entry * half[a];
            left -= entry * entry;
        }
        if (left_slope <= 0.0 || left <= dependent * squared_length || before + left_slope * left_slope / left <= best.explained)
            continue;
        right[q] = search.linear[j];
        gram(q, q) = squared_length;
        for (Index a = 0; a < q; ++a) gram(a, q) = gram(q, a) = search.rows(kept(a), j);
        const double explained =
            member_weights(gram, Vector<const double>(right.data(), q + 1), Vector<double>(x.data(), q + 1), work);
        if (explained > best.explained) best = {slot, j, explained};
    }
}

// The one change that explains most: add a member or, if there are `most` already, exchange one. Below `most` an addition
// explains at least as much as any exchange.
inline MemberChange best_member_change(const MemberSearch& search, Index most, double least) {
    const Index q = search.members.size;
    MemberChange best{-1, -1, least};
    if (q < most)
        improve_at_slot(search, q, q, best);
    else
        for (Index slot = 0; slot < q; ++slot) improve_at_slot(search, slot, q - 1, best);
    return best;
}

}  // namespace gsnmf
