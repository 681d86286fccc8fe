// Sums and products over long arrays, for the restricted master.
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

namespace tcboost {

using Vector = std::vector<double>;

constexpr std::size_t kBlock = 256;
constexpr std::size_t kWorthThreads = 1000000;  // products; fewer take less than a thread to start

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
    template <class See>
    void visit(See& see) {
        see(values);
    }
};

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
    template <class See>
    void visit(See& see) {
        see(cells, width, stride, table);
    }
};

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

// Numbers as integers of 45 bits, in three parts that fit into 16: products with small integers
// are then sums of integers, exact and in half the time of float64. Of so few numbers at a time
// that they stay in the second cache for all columns.
struct Parts {
    static constexpr std::size_t most = 32 * kBlock;
    std::int16_t parts[3][most];

    TCBOOST_WIDE void split(const double* x, std::size_t n, double unit) {
        for (std::size_t i = 0; i < n; ++i) {
            const auto whole = static_cast<std::int64_t>(std::floor(x[i] / unit + 0.5));
            parts[0][i] = static_cast<std::int16_t>(whole >> 30);
            parts[1][i] = static_cast<std::int16_t>((whole >> 15) & 32767);
            parts[2][i] = static_cast<std::int16_t>(whole & 32767);
        }
    }

    // Add up the products with the n numbers of a column from `first` on.
    template <class Column>
    TCBOOST_WIDE void add(const Column& a, std::size_t first, std::size_t n,
                          std::int64_t* sums) const {
        std::int8_t room[kBlock + kSlack];
        std::int16_t values[kBlock];
        for (std::size_t start = 0; start < n; start += kBlock) {
            const std::size_t size = std::min(kBlock, n - start);
            const std::int8_t* numbers = a.at(first + start, size, room);
            for (std::size_t i = 0; i < size; ++i) values[i] = numbers[i];
            for (std::size_t k = 0; k < 3; ++k) {
                const std::int16_t* part = parts[k] + start;
                std::int32_t s = 0;  // 256 numbers below 2^22: no overflow
                for (std::size_t i = 0; i < size; ++i)
                    s += static_cast<std::int32_t>(values[i]) * static_cast<std::int32_t>(part[i]);
                sums[k] += s;
            }
        }
    }
};

// out_j = column_j . x; in integers if it may be, to 2^-44 of the largest x.
template <class Column>
void column_inners(const std::vector<const Column*>& columns, const Vector& x, bool in_integers,
                   int n_threads, double* out) {
    const std::size_t n = x.size(), q = columns.size();
    if (n * q < kWorthThreads) n_threads = 1;
    if constexpr (std::is_same_v<typename Column::Number, std::int8_t>)
        if (in_integers) {
            double largest = 1e-300;
            for (double value : x) largest = std::max(largest, std::fabs(value));
            const double unit = std::ldexp(1.0, std::ilogb(largest) - 43);
            const std::size_t share = (n / 4 / kBlock + 1) * kBlock;
            std::vector<std::int64_t> sums(4 * q * 3);
            parallel_for(4, n_threads, [&](std::size_t quarter) {
                const std::unique_ptr<Parts> parts(new Parts);  // which is not cleared first
                const std::size_t end = std::min(n, (quarter + 1) * share);
                for (std::size_t i = quarter * share; i < end; i += Parts::most) {
                    const std::size_t size = std::min(Parts::most, end - i);
                    parts->split(x.data() + i, size, unit);
                    for (std::size_t j = 0; j < q; ++j)
                        parts->add(*columns[j], i, size, sums.data() + (quarter * q + j) * 3);
                }
            });
            for (std::size_t k = q * 3; k < sums.size(); ++k) sums[k % (q * 3)] += sums[k];
            for (std::size_t j = 0; j < q; ++j)
                out[j] = (static_cast<double>(sums[3 * j]) * 1073741824.0 +
                          static_cast<double>(sums[3 * j + 1]) * 32768.0 +
                          static_cast<double>(sums[3 * j + 2])) * unit;
            return;
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
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double shifted = x * 1.4426950408889634 + shift;
    const double k = shifted - shift;
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
TCBOOST_WIDE inline double log_sum_exp(const double* log_s, std::size_t width, double* u,
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

// The Gram matrix of weighted, centred columns: H_jk = sum_i h_i (P_ij - c_j) (P_ik - c_k).
//
// Centred first: sum h P P - c c would cancel, and turn indefinite in float32. In blocks of rows
// in the type Real, which are summed in float64. Tiles of rows x lanes stay in registers.
template <class Real>
class Gram {
   public:
    static constexpr std::size_t width = 64 / sizeof(Real);  // columns of a panel

    // h: weights of the n rows, those above the least are seen.
    Gram(const double* h, std::size_t n, double least) : h_(h), n_(n) {
        all_ = std::all_of(h, h + n, [least](double value) { return value > least; });
        if (all_) return;
        for (std::size_t i = 0; i < n; ++i)
            if (h[i] > least) rows_.push_back(static_cast<std::uint32_t>(i));
        n_ = rows_.size();
    }

    // The upper triangle of H, whose rows are `stride` apart: room for whole panels.
    template <class Column>
    void form(const Column* const* columns, const double* centre, std::size_t q, double* H,
              std::size_t stride, int n_threads) const {
        // In two halves, whatever the number of threads, so that the sum is the same.
        const std::size_t n = n_, half = n < 8 * block ? n : n / 2 / block * block;
        std::vector<double> second(half < n ? q * stride : 0);
        if (n * q * q / 8 < kWorthThreads) n_threads = 1;
        parallel_for(half < n ? 2 : 1, n_threads, [&](std::size_t i) {
            if (i == 0) form_part(columns, centre, q, H, stride, 0, half);
            else form_part(columns, centre, q, second.data(), stride, half, n);
        });
        for (std::size_t j = 0; j < (half < n ? q : 0); ++j)
            for (std::size_t k = j; k < q; ++k) H[j * stride + k] += second[j * stride + k];
    }

   private:
    static constexpr std::size_t block = 128, height = 4;

    template <class Column>
    void form_part(const Column* const* columns, const double* centre, std::size_t q, double* H,
                   std::size_t stride, std::size_t begin, std::size_t end) const {
        const std::size_t panels = (q + width - 1) / width;
        for (std::size_t j = 0; j < q; ++j) std::fill(H + j * stride, H + j * stride + q, 0.0);
        std::vector<Real> packed(panels * width * block);
        for (std::size_t start = begin; start < end; start += block) {
            const std::size_t size = std::min(block, end - start);
            Real root[block];
            for (std::size_t i = 0; i < size; ++i)
                root[i] = static_cast<Real>(std::sqrt(h_[all_ ? start + i : rows_[start + i]]));
            for (std::size_t j = 0; j < q; ++j)
                pack(*columns[j], static_cast<Real>(centre[j]), root, start, size,
                     packed.data() + (j / width) * width * block + j % width);
            for (std::size_t a = 0; a < q; a += height)
                for (std::size_t b = a / width; b < panels; ++b)
                    tile(packed.data() + (a / width) * width * block + a % width,
                         packed.data() + b * width * block, size, H + a * stride + b * width,
                         stride, std::min(height, q - a));
        }
    }

    template <class Column>
    TCBOOST_WIDE void pack(const Column& column, Real centre, const Real* root,
                           std::size_t start, std::size_t size,
                           Real* TCBOOST_RESTRICT out) const {
        Real value[block];
        typename Column::Number room[block + kSlack];
        const typename Column::Number* numbers = nullptr;
        if (all_) {
            numbers = column.at(start, size, room);
            for (std::size_t i = 0; i < size; ++i)
                value[i] = (static_cast<Real>(numbers[i]) - centre) * root[i];
        } else {
            std::size_t first = 0, end = 0;  // of the numbers at hand
            for (std::size_t i = 0; i < size; ++i) {
                const std::size_t row = rows_[start + i];
                if (row >= end) {
                    first = row, end = std::min<std::size_t>(row + block, rows_.back() + 1);
                    numbers = column.at(first, end - first, room);
                }
                value[i] = (static_cast<Real>(numbers[row - first]) - centre) * root[i];
            }
        }
        for (std::size_t i = 0; i < size; ++i) out[i * width] = value[i];
    }

    TCBOOST_WIDE static void tile(const Real* a, const Real* b, std::size_t size, double* H,
                                  std::size_t stride, std::size_t rows) {
        Pack<Real> low, high, s0l{}, s0h{}, s1l{}, s1h{}, s2l{}, s2h{}, s3l{}, s3h{};
        for (std::size_t i = 0; i < size; ++i, a += width, b += width) {
            load(b, low), load(b + width / 2, high);
            s0l += a[0] * low, s0h += a[0] * high;
            s1l += a[1] * low, s1h += a[1] * high;
            s2l += a[2] * low, s2h += a[2] * high;
            s3l += a[3] * low, s3h += a[3] * high;
        }
        const Pack<Real> packs[height][2] = {{s0l, s0h}, {s1l, s1h}, {s2l, s2h}, {s3l, s3h}};
        Real sums[height][width];
        std::memcpy(sums, packs, sizeof sums);
        for (std::size_t j = 0; j < rows; ++j)
            for (std::size_t k = 0; k < width; ++k) H[j * stride + k] += sums[j][k];
    }

    const double* h_;
    std::size_t n_;  // rows that are seen, those of rows_ unless all are
    std::vector<std::uint32_t> rows_;
    bool all_;
};

// The same of columns of small integers, for weights rounded to 15 bits.
//
// Sums of products of 16 bits are exact, so that the matrix is positive semidefinite whatever was
// rounded, and they take half the time of float32. Where rows whose weight is rounded to zero are
// left out it is less: they are three quarters of vehicle-ecc-200-hard. The order of the sums
// changes no bit. What it needs it keeps: fresh memory took as long as the products of 500 rows.
class RoundedGram {
   public:
    // Both triangles of H, for weights h of the rows; false if the numbers are too large. The rows
    // of H are `stride` apart, a multiple of 4.
    template <class Column>
    bool form(const Vector& h, const Column* const* columns, std::size_t q, bool centred,
              double* H, std::size_t stride, int n_threads) {
        int largest = 1;
        for (std::size_t j = 0; j < q; ++j) largest = std::max(largest, largest_of(*columns[j]));
        if (largest > most) return false;
        const double heaviest = std::max(*std::max_element(h.begin(), h.end()), 1e-300);
        const double unit = heaviest / (32767 / largest);  // an integer: products fit
        std::size_t n = h.size(), n_seen = 0;
        rows_.resize(n), weights_.resize(n);
        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            weights_[i] = static_cast<std::int16_t>(h[i] / unit + 0.5);
            total += weights_[i], n_seen += weights_[i] > 0;
        }
        // Where few rows would go, to pick out the others takes longer than it saves.
        all_ = (n - n_seen) * q < 64 * n;
        if (!all_) {
            n_seen = 0;
            for (std::size_t i = 0; i < n; ++i) {
                rows_[n_seen] = static_cast<std::uint32_t>(i);
                const std::int16_t weight = weights_[n_seen] = weights_[i];
                n_seen += weight > 0;
            }
            n = n_seen;
        }
        // Of two threads the first takes seven tenths of the columns, half of the triangle.
        const bool split = n_threads > 1 && n * q * q / 16 >= kWorthThreads;
        const std::size_t first = split ? q * 7 / 10 / width * width : 0;
        parallel_for(split ? 2 : 1, n_threads, [&](std::size_t i) {
            if (i == 0) form_part(columns, n, first, q, rooms_[0], H, stride);
            else form_part(columns, n, 0, first, rooms_[1], H, stride);
        });
        const double* totals = rooms_[0].totals.data();
        for (std::size_t j = 0; j < q; ++j) {
            const double mean = centred && total > 0 ? totals[j] / total : 0.0;
            for (std::size_t k = j; k < q; ++k)
                H[k * stride + j] = H[j * stride + k] =
                    (H[j * stride + k] - mean * totals[k]) * unit;
        }
        return true;
    }

   private:
    static constexpr int most = 16;  // a number takes 5 of the bits
    static constexpr std::size_t block = 512, height = 2, width = 4;

    struct alignas(32) Sixteen {  // what spans two lines of the cache takes a third longer
        std::int16_t numbers[16];
    };
    struct Room {  // of a thread
        std::vector<Sixteen> numbers, products;
        Vector totals;
    };

    // The upper triangle of H, its columns from `first` to q.
    template <class Column>
    void form_part(const Column* const* columns, std::size_t n, std::size_t first, std::size_t q,
                   Room& room, double* H, std::size_t stride) const {
        // Blocks of equal size: sums of few numbers take as long to end as those of many.
        const std::size_t n_blocks = std::max<std::size_t>(1, (n + block - 1) / block);
        const std::size_t most = (n + n_blocks - 1) / n_blocks;
        const std::size_t length = (most + 15) / 16 * 16;
        const std::size_t padded = (q + width - 1) / width * width;
        room.numbers.resize(std::max(room.numbers.size(), padded * length / 16));
        room.products.resize(room.numbers.size());
        room.totals.assign(q, 0.0);
        for (std::size_t j = 0; j < q; ++j)
            std::fill(H + j * stride + first, H + j * stride + q, 0.0);
        std::int16_t *numbers = room.numbers[0].numbers, *products = room.products[0].numbers;
        for (std::size_t start = 0; start < n; start += most) {
            const std::size_t size = std::min(most, n - start);
            for (std::size_t j = 0; j < q; ++j)
                pack(*columns[j], start, size, numbers + j * length);
            const std::int16_t* weights = weights_.data() + start;
            for (std::size_t j = 0; j < q; ++j) {
                std::int16_t* out = products + j * length;
                room.totals[j] += weigh(numbers + j * length, weights, size, out);
                std::fill(out + size, out + length, std::int16_t{0});
            }
            for (std::size_t b = first; b < q; b += width)  // four columns in the first cache
                for (std::size_t a = 0; a < std::min(b + width, q); a += height)
                    tile(products + a * length, numbers + b * length, length, H + a * stride + b,
                         stride);
        }
    }

    template <class Column>
    TCBOOST_WIDE static int largest_of(const Column& column) {
        std::int8_t low = 0, high = 0;
        for (std::int8_t number : column.values)
            low = number < low ? number : low, high = number > high ? number : high;
        return std::max<int>(high, -low);
    }

    template <class Column>
    TCBOOST_WIDE void pack(const Column& column, std::size_t start, std::size_t size,
                           std::int16_t* TCBOOST_RESTRICT out) const {
        const std::int8_t* numbers = column.values.data();
        const std::uint32_t* rows = rows_.data() + start;
        if (all_)
            for (std::size_t i = 0; i < size; ++i) out[i] = numbers[start + i];
        else
            for (std::size_t i = 0; i < size; ++i) out[i] = numbers[rows[i]];
    }

    TCBOOST_WIDE static std::int32_t weigh(const std::int16_t* numbers,
                                           const std::int16_t* weights, std::size_t size,
                                           std::int16_t* TCBOOST_RESTRICT out) {
        std::int32_t total = 0;
        for (std::size_t i = 0; i < size; ++i) {
            out[i] = static_cast<std::int16_t>(numbers[i] * weights[i]);
            total += out[i];
        }
        return total;
    }

    // Two columns with four others: the eight sums stay in registers.
    TCBOOST_WIDE static void tile(const std::int16_t* a, const std::int16_t* b, std::size_t size,
                                  double* H, std::size_t stride) {
        const std::int16_t *a1 = a + size, *b1 = b + size, *b2 = b1 + size, *b3 = b2 + size;
        std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
        for (std::size_t i = 0; i < size / 16 * 16; ++i) {
            const std::int32_t x = a[i], y = a1[i];
            s0 += x * b[i], t0 += y * b[i];
            s1 += x * b1[i], t1 += y * b1[i];
            s2 += x * b2[i], t2 += y * b2[i];
            s3 += x * b3[i], t3 += y * b3[i];
        }
        double* below = H + stride;
        H[0] += s0, below[0] += t0;
        H[1] += s1, below[1] += t1;
        H[2] += s2, below[2] += t2;
        H[3] += s3, below[3] += t3;
    }

    std::vector<std::uint32_t> rows_;    // that have a weight,
    std::vector<std::int16_t> weights_;  // in units
    bool all_ = true;                    // rows are seen
    Room rooms_[2];
};

}  // namespace tcboost
