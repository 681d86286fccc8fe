// Products with the signs of stumps, which come in chains: those on one feature, with missing values
// on the same side, can be ordered so that each has +1 wherever the next one has it. All that a row
// has of a chain is its place, the number of stumps that have +1 there, and both products take one
// look-up a chain, however long it is: for 430 stumps on 16 features a seventh of the time of BLAS
// in single precision.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "dense.hpp"
#include "threads.hpp"
#include "weights.hpp"

namespace tcboost {

// Hypotheses first[g] to first[g + 1] are chain g; places is rows x chains by columns.
struct Chains {
    const std::uint16_t* places;
    const std::int64_t* first;
    std::size_t n, count;

    std::size_t length(std::size_t g) const { return std::size_t(first[g + 1] - first[g]); }
    std::size_t columns() const { return std::size_t(first[count]); }
    // Of a table with a row for each place of each chain, where those of a chain start.
    std::size_t row(std::size_t g) const { return std::size_t(first[g]) + g; }
    // Few look-ups are not worth a second thread.
    int threads(int n_threads) const { return n * count < (1 << 15) ? 1 : n_threads; }
};

constexpr std::size_t rows_of_chains = 512;  // at a time: they stay in the nearest cache

// F = H V, n x C, for V by hypotheses (columns x C).
inline void chain_scores(const Chains& chains, const double* V, std::size_t C, int n_threads,
                         double* F) {
    const std::size_t n = chains.n, G = chains.count, stride = C + (4 - C % 4) % 4;
    std::vector<double> table((chains.columns() + G) * stride);
    std::vector<std::int64_t> rows(G), used(G);
    std::iota(used.begin(), used.end(), 0);
    for (std::size_t g = 0; g < G; ++g) {
        rows[g] = std::int64_t(chains.row(g));
        double* row = &table[chains.row(g) * stride];
        const double* v = V + std::size_t(chains.first[g]) * C;
        for (std::size_t j = 0; j < chains.length(g); ++j)
            for (std::size_t c = 0; c < C; ++c) row[c] -= v[j * C + c];
        for (std::size_t j = 0; j < chains.length(g); ++j, row += stride)
            for (std::size_t c = 0; c < C; ++c) row[stride + c] = row[c] + 2 * v[j * C + c];
    }
    const CellScores<std::uint16_t> scores(chains.places, rows.data(), used.data(), G, table.data(),
                                           stride, n);
    const std::size_t blocks = (n + rows_of_chains - 1) / rows_of_chains;
    parallel_for(blocks, chains.threads(n_threads), [&](std::size_t b) {
        const std::size_t i = b * rows_of_chains, m = std::min(rows_of_chains, n - i);
        std::vector<double> padded(m * stride);
        scores(i, m, padded.data());
        for (std::size_t r = 0; r < m; ++r) std::copy_n(&padded[r * stride], C, F + (i + r) * C);
    });
}

// table[place of the row] += its A, of m rows. Stride as for `add_tables`.
template <std::size_t Stride>
TCBOOST_WIDE void add_to_table(const std::uint16_t* place, const double* A, std::size_t m,
                               std::size_t any_stride, double* table) {
    const std::size_t stride = Stride ? Stride : any_stride;
    Pack<double> sum, a;
    for (std::size_t r = 0; r < m; ++r, A += stride) {
        double* at = table + place[r] * stride;
        for (std::size_t k = 0; k < stride; k += 4) {
            std::memcpy(&sum, at + k, sizeof sum), std::memcpy(&a, A + k, sizeof a);
            sum += a;
            std::memcpy(at + k, &sum, sizeof sum);
        }
    }
}

// out = H' A, columns x C, for A by rows (n x C).
inline void chain_sums(const Chains& chains, const double* A, std::size_t C, int n_threads,
                       double* out) {
    const std::size_t n = chains.n, G = chains.count, stride = C + (4 - C % 4) % 4;
    std::vector<double> table((chains.columns() + G) * stride);
    const auto add = stride == 4    ? add_to_table<4>
                     : stride == 8  ? add_to_table<8>
                     : stride == 12 ? add_to_table<12>
                                    : add_to_table<0>;
    // A chain belongs to one thread, so that sums are in the order of the rows.
    const auto parts = std::min<std::size_t>(G, std::max(chains.threads(n_threads), 1));
    parallel_for(parts, n_threads, [&](std::size_t part) {
        const std::size_t from = G * part / parts, to = G * (part + 1) / parts;
        std::vector<double> padded(rows_of_chains * stride);
        for (std::size_t i = 0; i < n; i += rows_of_chains) {
            const std::size_t m = std::min(rows_of_chains, n - i);
            for (std::size_t r = 0; r < m; ++r)
                std::copy_n(A + (i + r) * C, C, &padded[r * stride]);
            for (std::size_t g = from; g < to; ++g)
                add(chains.places + g * n + i, padded.data(), m, stride,
                    &table[chains.row(g) * stride]);
        }
        for (std::size_t g = from; g < to; ++g) {
            const double* row = &table[chains.row(g) * stride];
            double* sum = out + std::size_t(chains.first[g]) * C;
            const std::size_t length = chains.length(g);
            for (std::size_t c = 0; c < C; ++c) {
                double right = 0, total = 0;
                for (std::size_t p = 0; p <= length; ++p) total += row[p * stride + c];
                for (std::size_t j = length; j-- > 0;) {
                    right += row[(j + 1) * stride + c];
                    sum[j * C + c] = 2 * right - total;
                }
            }
        }
    });
}

}  // namespace tcboost
