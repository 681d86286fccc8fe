// The Gram matrices of the restricted master: its Hessian on some columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dense.hpp"

namespace tcboost {

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
        parallel_for(first > 0 ? 2 : 1, n_threads, [&](std::size_t i) {
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
    TCBOOST_WIDEST static void tile(const std::int16_t* a, const std::int16_t* b, std::size_t size,
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
