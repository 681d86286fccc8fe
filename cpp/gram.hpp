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

}  // namespace tcboost
