// Views of arrays in C order: a pointer with its shape. They own nothing and cost nothing.
#pragma once

#include <cstddef>
#include <type_traits>

namespace gsnmf {

using Index = std::ptrdiff_t;

template <class T>
struct Vector {
    T* data;
    Index size;

    Vector(T* data, Index size) : data(data), size(size) {}

    // A view that may write is also a view that only reads.
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    Vector(Vector<U> other) : data(other.data), size(other.size) {}

    T& operator[](Index i) const { return data[i]; }
    T* begin() const { return data; }
    T* end() const { return data + size; }
};

template <class T>
struct Matrix {
    T* data;
    Index n_rows;
    Index n_columns;

    Matrix(T* data, Index n_rows, Index n_columns) : data(data), n_rows(n_rows), n_columns(n_columns) {}

    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    Matrix(Matrix<U> other) : data(other.data), n_rows(other.n_rows), n_columns(other.n_columns) {}

    Vector<T> operator[](Index i) const { return {data + i * n_columns, n_columns}; }
    T& operator()(Index i, Index j) const { return data[i * n_columns + j]; }
    Index size() const { return n_rows * n_columns; }
};

// One part of a loop that is shared out among threads: its number, and the number of all parts.
struct Part {
    Index number;
    Index count;

    // Where a part begins if each part takes neighbouring items; the next part begins at its end.
    Index begin(Index n_items) const { return n_items * number / count; }
    Index end(Index n_items) const { return n_items * (number + 1) / count; }
};

// An index that is not negative. Reading it as unsigned saves the extension of its sign.
template <class I>
inline Index position(I index) {
    return Index(std::make_unsigned_t<I>(index));
}

// The positive part. Unlike std::max(0, value), it keeps NaN, so that no kernel hides one.
template <class T>
inline T positive(T value) {
    return value < T(0) ? T(0) : value;
}

}  // namespace gsnmf
