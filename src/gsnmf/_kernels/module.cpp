// Bindings: check types and shapes, release the global interpreter lock, run one part of a loop.
//
// Arrays are never converted: an argument of another type, memory order or shape is a TypeError. Entries of index arrays
// are trusted; gsnmf.matrix validates them once, when a matrix enters the package.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include "coordinate_descent.hpp"
#include "exchange.hpp"
#include "least_squares.hpp"
#include "members.hpp"
#include "observed_entries.hpp"
#include "omega.hpp"
#include "processor.hpp"
#include "simplex.hpp"
#include "sparse_products.hpp"

namespace nb = nanobind;

namespace gsnmf {
namespace {

template <class T, int n_dimensions>
using Array = nb::ndarray<T, nb::numpy, nb::ndim<n_dimensions>, nb::c_contig, nb::device::cpu>;

template <class T>
using In1 = Array<const T, 1>;
template <class T>
using In2 = Array<const T, 2>;
template <class T>
using Out1 = Array<T, 1>;
template <class T>
using Out2 = Array<T, 2>;
template <class T>
using In3 = Array<const T, 3>;
template <class T>
using Out3 = Array<T, 3>;

template <class T>
Vector<T> view(const Array<T, 1>& array) {
    return {array.data(), Index(array.shape(0))};
}

template <class T>
Matrix<T> view(const Array<T, 2>& array) {
    return {array.data(), Index(array.shape(0)), Index(array.shape(1))};
}

void require(bool condition, const char* message) {
    if (!condition) throw nb::type_error(message);
}

template <class A, class B>
void require_same_shape(const A& a, const B& b) {
    bool same = a.ndim() == b.ndim();
    for (size_t axis = 0; same && axis < a.ndim(); ++axis) same = a.shape(axis) == b.shape(axis);
    require(same, "arrays must have the same shape");
}

template <class A>
void require_shape(const A& array, size_t n_rows, size_t n_columns) {
    require(array.shape(0) == n_rows && array.shape(1) == n_columns, "array has the wrong shape");
}

template <class A>
void require_length(const A& array, size_t length) {
    require(array.shape(0) == length, "array has the wrong length");
}

// Positions in an array of `size` entries, as few as an array has rows.
void require_positions(const In1<Index>& indices, size_t size) {
    for (Index i : view(indices)) require(0 <= i && size_t(i) < size, "index out of range");
}

// The pointers of a compressed matrix must be those of its entries.
template <class T, class I>
void require_compressed(const In1<I>& indptr, const In1<I>& indices, const In1<T>& data) {
    const Vector<const I> p = view(indptr);
    bool valid = p.size > 0 && p[0] == 0 && size_t(p[p.size - 1]) == data.size() && indices.size() == data.size();
    for (Index i = 0; valid && i + 1 < p.size; ++i) valid = p[i] <= p[i + 1];
    require(valid, "indptr, indices and data are not those of a compressed matrix");
}

// Run one part of a loop without the global interpreter lock.
template <class Kernel>
void run(Index part, Index n_parts, Kernel kernel) {
    require(0 <= part && part < n_parts, "part must be in [0, n_parts)");
    const nb::gil_scoped_release release;
    kernel(Part{part, n_parts});
}

// Numbers are converted, for instance those of NumPy, but never arrays.
template <class Argument>
auto argument() {
    if constexpr (std::is_arithmetic_v<Argument>)
        return nb::arg();
    else
        return nb::arg().noconvert();
}

template <class Result, class... Arguments>
void define(nb::module_& module, const char* name, Result (*function)(Arguments...)) {
    module.def(name, function, argument<Arguments>()...);
}

void bind_least_squares(nb::module_& m) {
    define(m, "sweep_rows", +[](Out2<double> X, In2<double> linear, In2<double> gram, Index part, Index n_parts) {
        require_same_shape(X, linear);
        require_shape(gram, X.shape(1), X.shape(1));
        run(part, n_parts, [&](Part p) { sweep_rows(view(X), view(linear), view(gram), p); });
    });
    define(m, "pivot_rows", +[](Out2<double> X, In2<double> columns, In2<double> gram, In2<double> right, bool by_gram,
                                Out1<unsigned char> failed, Index part, Index n_parts) {
        require_same_shape(X, right);
        require_shape(columns, X.shape(1), X.shape(1));
        require_same_shape(columns, gram);
        require_length(failed, X.shape(0));
        run(part, n_parts, [&](Part p) {
            pivot_rows(view(X), {view(columns), view(gram)}, view(right), by_gram, view(failed), p);
        });
    });
    define(m, "active_set_rows", +[](Out2<double> X, In2<double> columns, In2<double> gram, In2<double> targets,
                                     Index part, Index n_parts) {
        require_same_shape(X, targets);
        require_shape(columns, X.shape(1), X.shape(1));
        require_same_shape(columns, gram);
        run(part, n_parts, [&](Part p) { active_set_rows(view(X), {view(columns), view(gram)}, view(targets), p); });
    });
    define(m, "passive_inverse_rows", +[](In2<double> X, In2<double> gram, Out2<double> inverses, Index part,
                                          Index n_parts) {
        const size_t r = X.shape(1);
        require_shape(gram, r, r);
        require_shape(inverses, X.shape(0), r * (r + 1) / 2);
        run(part, n_parts, [&](Part p) { passive_inverse_rows(view(X), view(gram), view(inverses), p); });
    });
}

void bind_simplex(nb::module_& m) {
    define(m, "project_on_hull_rows", +[](Out2<double> X, Out2<double> residuals, Out1<double> multipliers,
                                          In2<double> columns, In2<double> gram, double longest, In2<double> targets,
                                          Index part, Index n_parts) {
        require_same_shape(X, residuals);
        require_same_shape(X, targets);
        require_length(multipliers, X.shape(0));
        require_shape(columns, X.shape(1), X.shape(1));
        require_same_shape(columns, gram);
        require(X.shape(1) > 0, "there must be at least one point");
        run(part, n_parts, [&](Part p) {
            const Columns points{view(columns), view(gram)};
            project_on_hull_rows(view(X), view(residuals), view(multipliers), points, longest, view(targets), p);
        });
    });
    define(m, "simplex_least_squares_rows", +[](Out2<double> X, In2<double> columns, In2<double> gram, double longest,
                                                In2<double> targets, Index part, Index n_parts) {
        require_same_shape(X, targets);
        require_shape(columns, X.shape(1), X.shape(1));
        require_same_shape(columns, gram);
        require(X.shape(1) > 0, "there must be at least one column");
        run(part, n_parts, [&](Part p) {
            simplex_least_squares_rows(view(X), {view(columns), view(gram)}, longest, view(targets), p);
        });
    });
}

void bind_exchange(nb::module_& m) {
    m.attr("N_CHUNKS") = n_chunks;
    m.attr("TILE_WIDTH") = tile_width;
    define(m, "positive_square_rows", +[](In2<double> rows, Out1<double> sums, Index part, Index n_parts) {
        require_length(sums, rows.shape(0));
        run(part, n_parts, [&](Part p) { positive_square_rows(view(rows), view(sums), p); });
    });
    define(m, "exchange_score_rows", +[](In2<double> slopes, In2<double> coefficients, In2<double> vectors,
                                         Out2<double> scores, Index part, Index n_parts) {
        require_shape(coefficients, slopes.shape(0), vectors.shape(0));
        require_same_shape(coefficients, scores);
        require_shape(vectors, vectors.shape(0), slopes.shape(1));
        run(part, n_parts, [&](Part p) {
            exchange_score_rows(view(slopes), view(coefficients), view(vectors), view(scores), p);
        });
    });
    define(m, "cross_product_chunks", +[](In2<double> A, In2<double> B, Out3<double> products, Index part, Index n_parts) {
        require_length(B, A.shape(0));
        require(products.shape(0) == size_t(n_chunks) && products.shape(1) == A.shape(1) && products.shape(2) == B.shape(1),
                "array has the wrong shape");
        const Matrix<double> stacked(products.data(), n_chunks * A.shape(1), B.shape(1));
        run(part, n_parts, [&](Part p) { cross_product_chunks(view(A), view(B), stacked, p); });
    });
    define(m, "descend_trial_chunks", +[](Out2<double> X, In2<double> linear, In2<double> left, In2<double> right,
                                          In2<double> gram, Out2<double> sums, Index part, Index n_parts) {
        require_same_shape(X, linear);
        require_shape(left, X.shape(0), right.shape(0));
        require_shape(right, right.shape(0), X.shape(1));
        require_shape(gram, X.shape(1), X.shape(1));
        require_shape(sums, n_chunks, 3);
        run(part, n_parts, [&](Part p) {
            descend_trial_chunks(view(X), view(linear), view(left), view(right), view(gram), view(sums), p);
        });
    });
}

void bind_members(nb::module_& m) {
    define(m, "member_weights", +[](In2<double> gram, In1<double> linear, Out1<double> weights) {
        require_shape(gram, linear.size(), linear.size());
        require_same_shape(linear, weights);
        const nb::gil_scoped_release release;
        MemberWorkspace work(linear.size());
        member_weights(view(gram), view(linear), view(weights), work);
    });
    define(m, "best_member_change", +[](In1<Index> members, In2<double> rows, In1<double> diagonal, In1<double> linear,
                                        In1<bool> allowed, Index most, double least) {
        require_shape(rows, members.size(), linear.size());
        require_same_shape(diagonal, linear);
        require_same_shape(allowed, linear);
        require_positions(members, linear.size());
        MemberChange change;
        {
            const nb::gil_scoped_release release;
            change = best_member_change(
                {view(members), view(rows), view(diagonal), view(linear), view(allowed)}, most, least
            );
        }
        return std::tuple(change.position, change.index, change.explained);
    });
}

// Kernels in single and in double precision.
template <class T>
void bind_floats(nb::module_& m) {
    define(m, "descend_blocks", +[](Out2<T> X, In2<T> target, In2<T> gram, Index max_sweeps, double tolerance,
                                    Index part, Index n_parts) {
        require_same_shape(X, target);
        require_shape(gram, X.shape(0), X.shape(0));
        run(part, n_parts, [&](Part p) {
            descend_blocks<T>(view(X), view(target), view(gram), max_sweeps, tolerance, p);
        });
    });
    define(m, "project_on_simplex_blocks", +[](Out2<T> X, bool exact, Index part, Index n_parts) {
        run(part, n_parts, [&](Part p) { project_on_simplex_blocks(view(X), exact, p); });
    });
    define(m, "descend_on_simplex_blocks", +[](Out2<T> X, In2<T> target, In2<T> gram, double step_length, bool exact,
                                               Index max_steps, double tolerance, Index part, Index n_parts) {
        require_same_shape(X, target);
        require_shape(gram, X.shape(0), X.shape(0));
        run(part, n_parts, [&](Part p) {
            descend_on_simplex_blocks<T>(view(X), view(target), view(gram), step_length, exact, max_steps, tolerance, p);
        });
    });
    define(m, "project_rows_on_omega", +[](In2<T> X, In1<T> weights, In1<Index> indices, Out2<T> out, Index part,
                                           Index n_parts) {
        require_same_shape(X, out);
        require_length(weights, X.shape(1));
        require_length(indices, X.shape(0));
        require_positions(indices, X.shape(1));
        run(part, n_parts, [&](Part p) { project_rows_on_omega(view(X), view(weights), view(indices), view(out), p); });
    });
    define(m, "shrink_euclidean_rows", +[](Out2<T> X, In1<T> thresholds, Index part, Index n_parts) {
        require_length(thresholds, X.shape(0));
        run(part, n_parts, [&](Part p) { shrink_euclidean_rows<T>(view(X), view(thresholds), p); });
    });
    define(m, "shrink_maximum_rows", +[](Out2<T> X, In1<T> thresholds, Index part, Index n_parts) {
        require_length(thresholds, X.shape(0));
        run(part, n_parts, [&](Part p) { shrink_maximum_rows<T>(view(X), view(thresholds), p); });
    });
    define(m, "trace_score_rows", +[](In2<T> slopes, In1<Index> indices, In1<T> weights, Out1<double> scores, Index part,
                                      Index n_parts) {
        require_length(weights, slopes.shape(1));
        require_length(indices, slopes.shape(0));
        require_length(scores, slopes.shape(0));
        require_positions(indices, slopes.shape(1));
        run(part, n_parts, [&](Part p) { trace_score_rows(view(slopes), view(indices), view(weights), view(scores), p); });
    });
    define(m, "group_score_rows", +[](In2<T> slopes, bool euclidean, Out1<double> scores, Index part, Index n_parts) {
        require_length(scores, slopes.shape(0));
        run(part, n_parts, [&](Part p) { group_score_rows(view(slopes), euclidean, view(scores), p); });
    });
}

// Kernels on sparse matrices with values of type T and indices of type I.
template <class T, class I>
void bind_sparse(nb::module_& m) {
    define(m, "sparse_gram_rows", +[](In1<I> starts, In1<I> targets, In1<T> factors, In1<I> indptr, In1<I> indices,
                                      In1<T> data, Out2<double> product, Index part, Index n_parts) {
        require_compressed(starts, targets, factors);
        require_compressed(indptr, indices, data);
        require_length(starts, product.shape(0) + 1);
        run(part, n_parts, [&](Part p) {
            const Compressed<T, I> columns{view(starts), view(targets), view(factors)};
            sparse_gram_rows(columns, {view(indptr), view(indices), view(data)}, view(product), p);
        });
    });
    define(m, "add_entries", +[](In1<I> indices, In1<T> data, bool squared, Out1<double> sums) {
        require_same_shape(indices, data);
        const nb::gil_scoped_release release;
        add_entries(view(indices), view(data), squared, view(sums));
    });
    define(m, "column_sums", +[](In1<I> indptr, In1<I> indices, In1<T> data, bool squared, Out1<double> sums, Index part,
                                 Index n_parts) {
        require_compressed(indptr, indices, data);
        require_length(indptr, sums.shape(0) + 1);
        run(part, n_parts, [&](Part p) { column_sums(view(indptr), view(data), squared, view(sums), p); });
    });
}

template <class T, class I, class S>
void bind_sparse_dot(nb::module_& m) {
    define(m, "sparse_dot_rows", +[](In1<I> indptr, In1<I> indices, In1<T> data, In2<S> block, Out2<S> product, Index part,
                                     Index n_parts) {
        require_compressed(indptr, indices, data);
        require_shape(product, indptr.size() - 1, block.shape(1));
        run(part, n_parts, [&](Part p) {
            sparse_dot_rows<T, I, S>({view(indptr), view(indices), view(data)}, view(block), view(product), p);
        });
    });
}

// Kernels on observed entries. Each begins with indptr, indices, values and weights.
template <class T, class I>
void bind_observed(nb::module_& m) {
    static const auto entries_of = [](In1<I>& indptr, In1<I>& indices, In1<T>& values, In1<T>& weights, size_t n_rows) {
        require_compressed(indptr, indices, values);
        require_length(indptr, n_rows + 1);
        require(weights.size() == 0 || weights.size() == values.size(), "weights must be empty or one per entry");
        return Entries<T, I>{view(indptr), view(indices), view(values), view(weights)};
    };
    define(m, "ridge_rows", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> F, double ridge,
                                Out2<double> X, Index part, Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, X.shape(0));
        require(F.shape(1) == X.shape(1), "arrays must have the same width");
        run(part, n_parts, [&](Part p) { ridge_rows(entries, view(F), ridge, view(X), p); });
    });
    define(m, "nonnegative_observed_rows", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> F,
                                               In1<double> shown, Out2<double> X, Out1<double> violations, Index part,
                                               Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, X.shape(0));
        require(F.shape(1) == X.shape(1), "arrays must have the same width");
        require_length(shown, X.shape(1));
        require_length(violations, X.shape(0));
        run(part, n_parts, [&](Part p) {
            nonnegative_observed_rows(entries, view(F), view(shown), view(X), view(violations), p);
        });
    });
    define(m, "simplex_observed_rows", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> F,
                                           Out2<double> X, Index part, Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, X.shape(0));
        require(F.shape(1) == X.shape(1) && X.shape(1) > 0, "arrays must have the same width, at least one");
        run(part, n_parts, [&](Part p) { simplex_observed_rows(entries, view(F), view(X), p); });
    });
    define(m, "row_grams", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> F,
                               Out3<double> grams, Out2<double> lengths, Index part, Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, lengths.shape(0));
        require_shape(lengths, grams.shape(0), F.shape(1));
        require(grams.shape(1) == F.shape(1) && grams.shape(2) == F.shape(1), "array has the wrong shape");
        run(part, n_parts, [&](Part p) { row_grams(entries, view(F), grams.data(), view(lengths), p); });
    });
    define(m, "observed_residuals", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> A,
                                        In2<double> B, Out1<double> residuals, Index part, Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, A.shape(0));
        require(A.shape(1) == B.shape(1), "arrays must have the same width");
        require_length(residuals, values.size());
        run(part, n_parts, [&](Part p) { observed_residuals(entries, view(A), view(B), view(residuals), p); });
    });
    define(m, "observed_slopes", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> A,
                                     In2<double> B, In2<double> F, bool with_values, Out2<double> slopes, Index part,
                                     Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, slopes.shape(0));
        require(A.shape(1) == B.shape(1) && F.shape(1) == slopes.shape(1), "arrays must have the same width");
        require(A.shape(0) == slopes.shape(0) && B.shape(0) == F.shape(0), "arrays must have the same length");
        run(part, n_parts, [&](Part p) {
            observed_slopes(entries, view(A), view(B), view(F), with_values, view(slopes), p);
        });
    });
    define(m, "descend_observed_rows", +[](In1<I> indptr, In1<I> indices, In1<T> values, In1<T> weights, In2<double> F,
                                           Out2<double> X, Index n_sweeps, In2<bool> free, In2<double> prior,
                                           In2<double> prior_weights, Out1<double> violations, Index part, Index n_parts) {
        const auto entries = entries_of(indptr, indices, values, weights, X.shape(0));
        require(F.shape(1) == X.shape(1), "arrays must have the same width");
        require_length(violations, X.shape(0));
        require_same_shape(prior, prior_weights);
        if (free.size() > 0) require_same_shape(free, X);
        if (prior.size() > 0) require_same_shape(prior, X);
        run(part, n_parts, [&](Part p) {
            const Prior penalty{view(prior), view(prior_weights)};
            descend_observed_rows(entries, view(F), view(X), n_sweeps, view(free), penalty, view(violations), p);
        });
    });
}

void bind_observed_grams(nb::module_& m) {
    define(m, "sweep_rows_with_grams", +[](Out2<double> X, Out2<double> slopes, In3<double> grams, Index part,
                                           Index n_parts) {
        require_same_shape(X, slopes);
        require(grams.shape(0) == X.shape(0) && grams.shape(1) == X.shape(1) && grams.shape(2) == X.shape(1),
                "array has the wrong shape");
        run(part, n_parts, [&](Part p) { sweep_rows_with_grams(view(X), view(slopes), grams.data(), p); });
    });
}

template <class T>
void bind_values(nb::module_& m) {
    bind_floats<T>(m);
    bind_sparse<T, std::int32_t>(m);
    bind_sparse<T, std::int64_t>(m);
    bind_observed<T, std::int32_t>(m);
    bind_observed<T, std::int64_t>(m);
    bind_sparse_dot<T, std::int32_t, float>(m);
    bind_sparse_dot<T, std::int32_t, double>(m);
    bind_sparse_dot<T, std::int64_t, float>(m);
    bind_sparse_dot<T, std::int64_t, double>(m);
}

}  // namespace
}  // namespace gsnmf

NB_MODULE(GSNMF_BUILD, m) {
    using namespace gsnmf;
    m.def("processor_runs", &processor_runs);
    bind_least_squares(m);
    bind_simplex(m);
    bind_exchange(m);
    bind_members(m);
    bind_observed_grams(m);
    bind_values<double>(m);  // tried first: most arrays are in double precision
    bind_values<float>(m);
}
