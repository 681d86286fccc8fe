// Features on their way to cells: hashes of rows, the rows that are chosen, bins of values, and cells
// of pairs of bins. Before the first round of a fit this is all that looks at every value; with it
// done by NumPy, in one thread, it took two thirds of a fit of 100 stumps on covertype.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "machine.hpp"
#include "threads.hpp"

namespace tcboost {

// With one kind of NaN and one of zero.
inline double one_nan(double x) {
    return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x + 0.0;
}

// Rows x features, wherever they lie: so many numbers apart.
struct Table {
    const double* at;
    std::size_t n, n_features;
    std::ptrdiff_t row, feature;

    double operator()(std::size_t i, std::size_t d) const {
        return one_nan(at[std::ptrdiff_t(i) * row + std::ptrdiff_t(d) * feature]);
    }

    void fetch(std::size_t i, std::size_t d, std::size_t k) const {
#if defined(__GNUC__)
        const double* from = at + std::ptrdiff_t(i) * row + std::ptrdiff_t(d) * feature;
        for (std::size_t j = 0; j < k; j += 8) __builtin_prefetch(from + std::ptrdiff_t(j) * feature);
        __builtin_prefetch(from + std::ptrdiff_t(k - 1) * feature);
#endif
    }
};

constexpr std::size_t feature_chunk = 4096;  // rows that a thread takes at once

// Call work(begin, end, thread) for chunks of n rows.
template <class Work>
void in_chunks(std::size_t n, int n_threads, Work work) {
    const std::size_t chunks = (n + feature_chunk - 1) / feature_chunk;
    parallel_for(chunks, n_threads, [&](std::size_t c, std::size_t thread) {
        work(c * feature_chunk, std::min(n, (c + 1) * feature_chunk), thread);
    });
}

// Two hashes of 64 bits of each row: multiply and shift, after every value. Four rows at a time, for
// a value waits for the one before it.
inline void hash_rows(const Table& X, int n_threads, std::uint64_t* first, std::uint64_t* second) {
    constexpr std::size_t together = 4;
    constexpr std::array<std::uint64_t, 2> seeds{0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F};
    const auto mix = [](std::uint64_t h, std::uint64_t bits) {
        h = (h ^ bits) * 0xFF51AFD7ED558CCD;
        h = (h ^ (h >> 32)) * 0xC4CEB9FE1A85EC53;
        return h ^ (h >> 29);
    };
    in_chunks(X.n, n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; i += together) {
            std::uint64_t h[2][together];
            for (std::size_t s = 0; s < 2; ++s) std::fill_n(h[s], together, seeds[s]);
            const std::size_t last = end - 1;
            for (std::size_t d = 0; d < X.n_features; ++d)
                for (std::size_t r = 0; r < together; ++r) {
                    const double x = X(std::min(i + r, last), d);
                    std::uint64_t bits;
                    std::memcpy(&bits, &x, sizeof x);
                    for (std::size_t s = 0; s < 2; ++s) h[s][r] = mix(h[s][r], bits);
                }
            for (std::size_t r = 0; r < together && i + r < end; ++r)
                first[i + r] = h[0][r], second[i + r] = h[1][r];
        }
    });
}

// out[k, i] = X[rows[i], first + k] for n rows and so many features.
inline void chosen_values(const Table& X, const std::int64_t* rows, std::size_t n,
                          std::size_t first, std::size_t features, int n_threads, double* out) {
    constexpr std::size_t ahead = 16;  // rows that are fetched while this one is copied
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            if (i + ahead < end) X.fetch(static_cast<std::size_t>(rows[i + ahead]), first, features);
            const auto row = static_cast<std::size_t>(rows[i]);
            for (std::size_t k = 0; k < features; ++k) out[k * n + i] = X(row, first + k);
        }
    });
}

// bins[i] = 1 + the number of cuts below x[i], by bisection; 0 for NaN. Some values at a time, which
// do not wait for each other.
template <class Bin>
TCBOOST_WIDE void bins_of(const double* cuts, std::size_t n_cuts, const double* x, std::size_t n,
                          Bin* bins) {
    constexpr std::size_t together = 16;
    for (std::size_t i = 0; i < n; i += together) {
        const std::size_t m = std::min(together, n - i);
        double value[together] = {};
        std::uint32_t place[together] = {};
        std::copy_n(x + i, m, value);
        for (std::size_t left = n_cuts; left > 0;) {
            const auto half = static_cast<std::uint32_t>((left + 1) / 2);
            for (std::size_t r = 0; r < together; ++r)
                place[r] += half & (0U - std::uint32_t(cuts[place[r] + half - 1] < value[r]));
            left -= half;
        }
        Bin found[together];
        for (std::size_t r = 0; r < together; ++r)
            found[r] = static_cast<Bin>(value[r] == value[r] ? place[r] + 1 : 0);
        std::copy_n(found, m, bins + i);
    }
}

// Numbers of the pairs of a cell and a bin that occur, in order: of each row, if they are no more
// than `most`, and of each number the pair, as cell n_bins + bin.
struct Joined {
    std::vector<std::int64_t> pairs;
    bool fits = true;  // every row has a cell and a bin that there are
};

template <class Cell, class Bin>
Joined join_cells(const Cell* cells, std::size_t n_cells, const Bin* bins, std::size_t n_bins,
                  std::size_t n, std::size_t most, int n_threads, std::int32_t* number) {
    const std::size_t threads = std::max(n_threads, 1), all = n_cells * n_bins;
    std::vector<std::vector<std::uint8_t>> occurs(threads);
    std::vector<char> outside(threads);
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end, std::size_t thread) {
        std::uint32_t cell = 0, bin = 0;
        for (std::size_t i = begin; i < end; ++i) {
            cell = std::max(cell, static_cast<std::uint32_t>(cells[i]));
            bin = std::max(bin, static_cast<std::uint32_t>(bins[i]));
        }
        if (cell >= n_cells || bin >= n_bins) {
            outside[thread] = 1;
            return;
        }
        occurs[thread].resize(all);
        std::uint8_t* mine = occurs[thread].data();
        for (std::size_t i = begin; i < end; ++i)
            mine[static_cast<std::size_t>(cells[i]) * n_bins + bins[i]] = 1;
    });
    Joined joined;
    joined.fits = std::count(outside.begin(), outside.end(), 0) == std::ptrdiff_t(threads);
    if (!joined.fits) return joined;
    std::vector<std::int32_t> number_of(all);
    for (const auto& table : occurs)
        for (std::size_t k = 0; k < table.size(); ++k) number_of[k] |= table[k];
    for (std::size_t k = 0; k < all; ++k) {
        if (!number_of[k]) continue;
        number_of[k] = static_cast<std::int32_t>(joined.pairs.size());
        joined.pairs.push_back(static_cast<std::int64_t>(k));
    }
    if (joined.pairs.size() > most) return joined;
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i)
            number[i] = number_of[static_cast<std::size_t>(cells[i]) * n_bins + bins[i]];
    });
    return joined;
}

}  // namespace tcboost
