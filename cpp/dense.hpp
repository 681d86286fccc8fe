// Sums and products over long arrays.
//
// Every sum has an order that the length of the arrays alone decides: lanes are a part of the
// formula, not of the machine, and products are never fused. So the wide instructions that
// TCBOOST_WIDE picks at run time change no bit of a result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "machine.hpp"
#include "threads.hpp"

namespace tcboost {

using Vector = std::vector<double>;

constexpr std::size_t kBlock = 256;
constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
constexpr std::size_t kWorthThreads = 1000000;  // products; fewer are not worth a thread

// 32 bytes of numbers, added and multiplied number by number.
#if defined(__GNUC__)
template <class Real>
struct PackOf {
    typedef Real type __attribute__((vector_size(32)));
};
template <class Real>
using Pack = typename PackOf<Real>::type;
#else
template <class Real>
struct Pack {
    Real lane[32 / sizeof(Real)] = {};
    Real operator[](std::size_t l) const { return lane[l]; }
    Pack& operator+=(const Pack& other) {
        for (std::size_t l = 0; l < 32 / sizeof(Real); ++l) lane[l] += other.lane[l];
        return *this;
    }
    template <class Work>
    friend Pack lanewise(const Pack& a, const Pack& b, Work work) {
        Pack out;
        for (std::size_t l = 0; l < 32 / sizeof(Real); ++l) out.lane[l] = work(a.lane[l], b.lane[l]);
        return out;
    }
    friend Pack operator*(const Pack& a, const Pack& b) { return lanewise(a, b, std::multiplies<>()); }
    friend Pack operator+(const Pack& a, const Pack& b) { return lanewise(a, b, std::plus<>()); }
    friend Pack operator-(const Pack& a, const Pack& b) { return lanewise(a, b, std::minus<>()); }
    friend Pack operator|(const Pack& a, const Pack& b) { return lanewise(a, b, std::bit_or<>()); }
    friend Pack operator*(Real a, const Pack& b) {
        Pack product;
        for (std::size_t l = 0; l < 32 / sizeof(Real); ++l) product.lane[l] = a * b.lane[l];
        return product;
    }
};
#endif

// A column of numbers, read a few at a time: `at` gives those from `start` on, if need be in the
// room, which has to hold kSlack more than are asked for.
template <class T>
struct Dense {
    using Number = T;
    std::vector<T> values;

    const T* at(std::size_t start, std::size_t, T*) const { return values.data() + start; }
    // With row i where row from[i] was, of `width` numbers each.
    Dense of_rows(const std::vector<std::uint32_t>& from, std::size_t width) const {
        std::vector<T> taken(from.size() * width);
        for (std::size_t i = 0; i < from.size(); ++i)
            std::copy_n(values.data() + from[i] * width, width, taken.data() + i * width);
        return {std::move(taken)};
    }};

// For each cell a row of a table: one byte a row, where `Dense` takes one a number.
struct Tabled {
    using Number = std::int8_t;
    std::vector<std::uint8_t> cells;
    std::size_t width, stride;  // of the table: stride is a multiple of 8
    std::vector<std::int8_t> table;

    TCBOOST_INLINE const std::int8_t* at(std::size_t start, std::size_t size,
                                         std::int8_t* room) const {
        const std::size_t w = width, s = stride, first = start / w, last = (start + size - 1) / w;
        const std::int8_t* from = table.data();  // in a local: bytes written might overlap it
        const std::uint8_t* cell = cells.data();
        std::int8_t* out = room;
        for (std::size_t i = first; i <= last; ++i, out += w) {
            std::memcpy(out, from + cell[i] * s, 8);
            for (std::size_t k = 8; k < s; k += 8) std::memcpy(out + k, from + cell[i] * s + k, 8);
        }
        return room + (start - first * w);
    }
    Tabled of_rows(const std::vector<std::uint32_t>& from, std::size_t) const {
        std::vector<std::uint8_t> taken(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) taken[i] = cells[from[i]];
        return {std::move(taken), width, stride, table};
    }};

constexpr std::size_t kSlack = 2 * 128;  // rows of 128 numbers at the most, begun and ended

template <class Real>
TCBOOST_INLINE void load(const Real* from, Pack<Real>& pack) {
    std::memcpy(&pack, from, sizeof pack);
}

template <class Real>
TCBOOST_INLINE void fill(Pack<Real>& pack, Real value) {
    Real all[32 / sizeof(Real)];
    std::fill(all, all + 32 / sizeof(Real), value);
    load(all, pack);
}

// most = max(most, other), number by number.
TCBOOST_INLINE void raise_to(Pack<std::int64_t>& most, const Pack<std::int64_t>& other) {
#if defined(__GNUC__)
    most = most > other ? most : other;
#else
    most = lanewise(most, other, [](auto a, auto b) { return std::max(a, b); });
#endif
}

// Sum of a_i, block by block: the rounding of a long sum of equal numbers is one-sided.
TCBOOST_INLINE double sum(const double* a, std::size_t n) {
    double all = 0.0;
    for (std::size_t start = 0; start < n; start += kBlock) {
        double part[4] = {};
        for (std::size_t i = start; i < std::min(n, start + kBlock); ++i) part[i % 4] += a[i];
        all += (part[0] + part[2]) + (part[1] + part[3]);
    }
    return all;
}

inline double sum(const Vector& a) { return sum(a.data(), a.size()); }

// The largest |a_i|.
TCBOOST_WIDE inline double largest_size(const double* a, std::size_t n) {
    double most[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t l = 0; l < 8; ++l)
            most[l] = std::fabs(a[i + l]) > most[l] ? std::fabs(a[i + l]) : most[l];
    for (; i < n; ++i) most[0] = std::max(most[0], std::fabs(a[i]));
    return *std::max_element(most, most + 8);
}

// Sum of a_i b_i, in eight parts.
TCBOOST_INLINE double inner(const double* a, const double* b, std::size_t n) {
    Pack<double> s{}, t{}, x, y;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        load(a + i, x), load(b + i, y);
        s += x * y;
        load(a + i + 4, x), load(b + i + 4, y);
        t += x * y;
    }
    double rest = 0.0;
    for (; i < n; ++i) rest += a[i] * b[i];
    s += t;
    return ((s[0] + s[2]) + (s[1] + s[3])) + rest;
}

// The same for who is not wide himself: there packs are taken apart.
TCBOOST_WIDE inline double inner(const Vector& a, const Vector& b) {
    return inner(a.data(), b.data(), a.size());
}

// Sum of a_i (b_i - c)^2, in the same order.
TCBOOST_WIDE inline double inner_squares(const double* a, const double* b, double c,
                                         std::size_t n) {
    double s[8] = {}, rest = 0.0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t l = 0; l < 8; ++l) s[l] += a[i + l] * ((b[i + l] - c) * (b[i + l] - c));
    for (; i < n; ++i) rest += a[i] * ((b[i] - c) * (b[i] - c));
    for (std::size_t l = 0; l < 4; ++l) s[l] += s[l + 4];
    return ((s[0] + s[2]) + (s[1] + s[3])) + rest;
}

// Sum of a_i b_i for a column of numbers that are turned to float64 first.
template <class Column>
TCBOOST_WIDE double column_inner(const Column& a, const double* b, std::size_t n) {
    typename Column::Number room[kBlock + kSlack];
    double values[kBlock], s = 0.0;
    for (std::size_t start = 0; start < n; start += kBlock) {
        const std::size_t size = std::min(kBlock, n - start);
        const auto* numbers = a.at(start, size, room);
        for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(numbers[i]);
        s += inner(values, b + start, size);
    }
    return s;
}

// Numbers as integers of 45 bits, in three parts that fit into 16: products with small integers are
// then sums of integers, exact and in half the time of float64. Of so few numbers at a time that they
// stay in the second cache for all columns.
struct Parts {
    static constexpr std::size_t most = 32 * kBlock;
    std::int16_t parts[3][most];

    // x times `units`, rounded. AVX2 has no cast of float64 to int64, but the shift leaves an
    // integer in the low 51 bits.
    TCBOOST_WIDE void split(const double* x, std::size_t n, double units) {
        for (std::size_t i = 0; i < n; ++i) {
            const double shifted = std::floor(x[i] * units + 0.5) + kShift;
            std::uint64_t whole;
            std::memcpy(&whole, &shifted, sizeof whole);
            parts[0][i] = static_cast<std::int16_t>(whole >> 30);
            parts[1][i] = static_cast<std::int16_t>((whole >> 15) & 32767);
            parts[2][i] = static_cast<std::int16_t>(whole & 32767);
        }
    }

    // Add up the products with the n numbers of a column from `first` on.
    template <class Column>
    TCBOOST_WIDEST void add(const Column& column, std::size_t first, std::size_t n,
                            std::int64_t* sums) const {
        std::int8_t room[kBlock + kSlack];
        std::size_t start = 0;
        for (; start + kBlock <= n; start += kBlock)  // of a constant size, and then of the rest
            add_block(column.at(first + start, kBlock, room), start, kBlock, sums);
        if (start < n) add_block(column.at(first + start, n - start, room), start, n - start, sums);
    }

   private:
    // All sums at once, so that the numbers are read once.
    TCBOOST_INLINE void add_block(const std::int8_t* numbers, std::size_t start, std::size_t size,
                                  std::int64_t* sums) const {
        const std::int16_t *a = parts[0] + start, *b = parts[1] + start, *c = parts[2] + start;
        std::int32_t of_a = 0, of_b = 0, of_c = 0;  // 256 numbers below 2^22: no overflow
        for (std::size_t i = 0; i < size; ++i) {
            const std::int16_t number = numbers[i];
            of_a += static_cast<std::int32_t>(number) * static_cast<std::int32_t>(a[i]);
            of_b += static_cast<std::int32_t>(number) * static_cast<std::int32_t>(b[i]);
            of_c += static_cast<std::int32_t>(number) * static_cast<std::int32_t>(c[i]);
        }
        sums[0] += of_a, sums[1] += of_b, sums[2] += of_c;
    }
};

// out_j = column_j . x, in float64; or in integers, if the columns have small ones: to 2^-44 of the
// largest x, in half the time.
template <class Column>
void column_inners(const std::vector<const Column*>& columns, const Vector& x, bool integers,
                   int n_threads, double* out) {
    const std::size_t n = x.size(), q = columns.size();
    if (n * q < kWorthThreads) n_threads = 1;
    if constexpr (std::is_same_v<typename Column::Number, std::int8_t>) {
        if (integers) {
            const double largest = std::max(largest_size(x.data(), n), 1e-250);
            const int exponent = std::ilogb(largest) + 2 - 45;
            const double unit = std::ldexp(1.0, exponent), units = std::ldexp(1.0, -exponent);
            const std::size_t share = (n / 4 / kBlock + 1) * kBlock;
            std::vector<std::int64_t> sums(4 * q * 3);
            parallel_for(4, n_threads, [&](std::size_t quarter) {
                const std::unique_ptr<Parts> parts(new Parts);  // which is not cleared first
                const std::size_t end = std::min(n, (quarter + 1) * share);
                for (std::size_t i = quarter * share; i < end; i += Parts::most) {
                    const std::size_t size = std::min(Parts::most, end - i);
                    parts->split(x.data() + i, size, units);
                    for (std::size_t j = 0; j < q; ++j)
                        parts->add(*columns[j], i, size, sums.data() + (quarter * q + j) * 3);
                }
            });
            for (std::size_t k = q * 3; k < sums.size(); ++k) sums[k % (q * 3)] += sums[k];
            for (std::size_t j = 0; j < q; ++j) {
                const std::int64_t* s = sums.data() + 3 * j;
                out[j] = (static_cast<double>(s[0]) * 1073741824.0 +
                          static_cast<double>(s[1]) * 32768.0 + static_cast<double>(s[2])) *
                         unit;
            }
            return;
        }
    }
    parallel_for(4, n_threads, [&](std::size_t part) {
        for (std::size_t j = q * part / 4; j < q * (part + 1) / 4; ++j)
            out[j] = column_inner(*columns[j], x.data(), n);
    });
}

// y += alpha x
TCBOOST_INLINE void add_multiple(double alpha, const double* TCBOOST_RESTRICT x,
                                 double* TCBOOST_RESTRICT y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

// z = sum_j w_j column_j over the listed columns; a block of z stays in the first cache.
template <class Column>
TCBOOST_WIDE void combine(const Column* const* columns, const double* w, std::size_t n_columns,
                          std::size_t n, double* TCBOOST_RESTRICT z) {
    constexpr std::size_t block = 2048;
    typename Column::Number rooms[4][block + kSlack];
    for (std::size_t start = 0; start < n; start += block) {
        const std::size_t size = std::min(block, n - start);
        double* TCBOOST_RESTRICT out = z + start;
        std::fill(out, out + size, 0.0);
        std::size_t j = 0;
        for (; j + 4 <= n_columns; j += 4) {  // four at a time: z is loaded less often
            const auto *a = columns[j]->at(start, size, rooms[0]),
                       *b = columns[j + 1]->at(start, size, rooms[1]),
                       *c = columns[j + 2]->at(start, size, rooms[2]),
                       *d = columns[j + 3]->at(start, size, rooms[3]);
            const double wa = w[j], wb = w[j + 1], wc = w[j + 2], wd = w[j + 3];
            for (std::size_t i = 0; i < size; ++i)
                out[i] += (wa * static_cast<double>(a[i]) + wb * static_cast<double>(b[i])) +
                          (wc * static_cast<double>(c[i]) + wd * static_cast<double>(d[i]));
        }
        for (; j < n_columns; ++j) {
            const auto* a = columns[j]->at(start, size, rooms[0]);
            for (std::size_t i = 0; i < size; ++i) out[i] += w[j] * static_cast<double>(a[i]);
        }
    }
}

// exp(x) for -230 <= x <= 0, to two units in the last place. The same on every machine, unlike
// that of the mathematical library, and four at a time.
TCBOOST_INLINE double exp_of_negative(double x) {
    const double shifted = x * 1.4426950408889634 + kShift;
    const double k = shifted - kShift;
    const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    // Taylor: |r| <= log(2) / 2.
    constexpr double factorial[] = {479001600, 39916800, 3628800, 362880, 40320, 5040, 720,
                                    120,       24,       6,       2,      1,     1};
    double p = 1.0 / 6227020800.0;
    for (double f : factorial) p = p * r + 1.0 / f;
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

// log sum exp(log_s - z), every s being that of `width` margins; turns z into u, its gradient.
TCBOOST_WIDEST inline double log_sum_exp(const double* log_s, std::size_t width, double* u,
                                       std::size_t n) {
    double tops[4], top = -std::numeric_limits<double>::infinity();
    std::fill(tops, tops + 4, top);
    std::size_t i = 0;
    if (width == 1)  // without an inner loop it takes a fifth less altogether
        for (; i < n; ++i) u[i] = log_s[i] - u[i];
    for (std::size_t r = 0; i < n; ++r)
        for (std::size_t k = 0; k < width; ++k, ++i) u[i] = log_s[r] - u[i];
    i = 0;
    for (; i + 4 <= n; i += 4)
        for (std::size_t l = 0; l < 4; ++l) tops[l] = u[i + l] > tops[l] ? u[i + l] : tops[l];
    for (; i < n; ++i) top = u[i] > top ? u[i] : top;
    top = std::max({top, tops[0], tops[1], tops[2], tops[3]});
    // Below 1e-100 a share is lost in rounding, and would only make slow denormal numbers.
    for (i = 0; i < n; ++i) u[i] = u[i] - top > -230.0 ? u[i] - top : -230.0;
    for (i = 0; i < n; ++i) u[i] = exp_of_negative(u[i]);
    for (i = 0; i < n; ++i) u[i] = u[i] > 2e-100 ? u[i] : 0.0;
    const double total = sum(u, n);
    for (i = 0; i < n; ++i) u[i] /= total;
    return top + std::log(total);
}

}  // namespace tcboost
