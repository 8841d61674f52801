// Products and sums of sparse matrices in CSR or CSC form, accumulated in double precision.
//
// Each entry of a product is summed in the order in which the entries of a row are stored, so the number of threads does
// not change the result.
#pragma once

#include <algorithm>
#include <vector>

#include "views.hpp"

namespace gsnmf {

template <class T, class I>
struct Compressed {
    Vector<const I> indptr;
    Vector<const I> indices;
    Vector<const T> data;

    Index size() const { return indptr.size - 1; }

    // Where a part begins if all parts have about the same number of stored entries.
    Index begin(Part part) const {
        if (part.number == part.count) return size();
        const Index goal = Index(indptr[size()]) * part.number / part.count;
        return std::lower_bound(indptr.begin(), indptr.end() - 1, goal, [](I a, Index b) { return Index(a) < b; }) -
               indptr.begin();
    }
    Index end(Part part) const { return begin({part.number + 1, part.count}); }
};

// One row of a product with `width` columns, whose sums stay in registers.
template <int width, class T, class I, class S>
void dot_narrow(const Compressed<T, I>& matrix, Index i, const S* block, Index stride, S* product) {
    double sums[width] = {};
    const T* data = matrix.data.data;
    const I* indices = matrix.indices.data;
    for (Index q = matrix.indptr[i], end = matrix.indptr[i + 1]; q < end; ++q) {
        const double factor = data[q];
        const S* row = block + position(indices[q]) * stride;
        for (int k = 0; k < width; ++k) sums[k] += factor * double(row[k]);
    }
    for (int k = 0; k < width; ++k) product[k] = S(sums[k]);
}

// The product of a sparse matrix by rows with a dense block.
template <class T, class I, class S>
void sparse_dot_rows(const Compressed<T, I>& matrix, Matrix<const S> block, Matrix<S> product, Part part) {
    const Index width = block.n_columns;
    std::vector<double> memory(width);
    double* __restrict sums = memory.data();
    for (Index i = matrix.begin(part); i < matrix.end(part); ++i) {
        S* target = product.data + i * width;
        const S* source = block.data;
        switch (width) {
            case 1: dot_narrow<1>(matrix, i, source, width, target); continue;
            case 2: dot_narrow<2>(matrix, i, source, width, target); continue;
            case 3: dot_narrow<3>(matrix, i, source, width, target); continue;
            case 4: dot_narrow<4>(matrix, i, source, width, target); continue;
            case 5: dot_narrow<5>(matrix, i, source, width, target); continue;
            case 6: dot_narrow<6>(matrix, i, source, width, target); continue;
            case 7: dot_narrow<7>(matrix, i, source, width, target); continue;
            case 8: dot_narrow<8>(matrix, i, source, width, target); continue;
        }
        std::fill_n(sums, width, 0.0);
        const T* data = matrix.data.data;
        const I* indices = matrix.indices.data;
        Index q = matrix.indptr[i];
        const Index end = matrix.indptr[i + 1];
        for (; q + 2 <= end; q += 2) {  // two entries together read and write the sums once
            const double f0 = data[q], f1 = data[q + 1];
            const S* __restrict r0 = source + position(indices[q]) * width;
            const S* __restrict r1 = source + position(indices[q + 1]) * width;
            for (Index k = 0; k < width; ++k) sums[k] += f0 * double(r0[k]) + f1 * double(r1[k]);
        }
        if (q < end) {
            const double factor = data[q];
            const S* __restrict row = source + position(indices[q]) * width;
            for (Index k = 0; k < width; ++k) sums[k] += factor * double(row[k]);
        }
        for (Index k = 0; k < width; ++k) target[k] = S(sums[k]);
    }
}

// Add A'B, A held by columns and B by rows, to a dense product.
template <class T, class I>
void sparse_gram_rows(
    const Compressed<T, I>& columns, const Compressed<T, I>& matrix, Matrix<double> product, Part part
) {
    const T* __restrict data = matrix.data.data;
    const I* __restrict indices = matrix.indices.data;
    for (Index row = part.number; row < product.n_rows; row += part.count) {
        double* __restrict target = &product(row, 0);
        for (Index k = columns.indptr[row]; k < Index(columns.indptr[row + 1]); ++k) {
            const double factor = columns.data[k];
            const Index i = columns.indices[k];
            for (Index q = matrix.indptr[i], end = matrix.indptr[i + 1]; q < end; ++q)
                target[position(indices[q])] += factor * double(data[q]);
        }
    }
}

// Add every stored entry of a matrix held by rows, or its square, to the sum of its column.
template <class T, class I>
void add_entries(Vector<const I> indices, Vector<const T> data, bool squared, Vector<double> sums) {
    for (Index q = 0; q < data.size; ++q) {
        const double entry = data[q];
        sums[position(indices[q])] += squared ? entry * entry : entry;
    }
}

// Sum of the stored entries, or of their squares, of each column of a matrix held by columns.
template <class T, class I>
void column_sums(Vector<const I> indptr, Vector<const T> data, bool squared, Vector<double> sums, Part part) {
    for (Index j = part.begin(sums.size); j < part.end(sums.size); ++j) {
        double total = 0.0;
        for (Index q = indptr[j]; q < Index(indptr[j + 1]); ++q) {
            const double entry = data[q];
            total += squared ? entry * entry : entry;
        }
        sums[j] = total;
    }
}

}  // namespace gsnmf
