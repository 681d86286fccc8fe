// Features on their way to cells: hashes of rows, the rows that are chosen, bins of values, and cells
// of pairs of bins. By NumPy, in one thread, that took two thirds of a fit of 100 stumps on
// covertype.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

    // The values of a row are near each other, not those of a feature.
    bool by_rows() const { return std::abs(feature) <= std::abs(row); }

    // Ask for the features from d on of a row; a line of the cache holds eight.
    void fetch(std::size_t i, std::size_t d, std::size_t end) const {
#if defined(__GNUC__)
        const double* from = at + std::ptrdiff_t(i) * row;
        for (; d < end; d += 8) __builtin_prefetch(from + std::ptrdiff_t(d) * feature);
        __builtin_prefetch(from + std::ptrdiff_t(end - 1) * feature);
#else
        static_cast<void>(i), static_cast<void>(d), static_cast<void>(end);
#endif
    }
};

constexpr std::size_t feature_chunk = 4096;  // rows that a thread takes at once

// Call work(begin, end) for chunks of n rows.
template <class Work>
void in_chunks(std::size_t n, int n_threads, Work work) {
    const std::size_t chunks = (n + feature_chunk - 1) / feature_chunk;
    parallel_for(chunks, n_threads, [&](std::size_t c) {
        work(c * feature_chunk, std::min(n, (c + 1) * feature_chunk));
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
    in_chunks(X.n, n_threads, [&](std::size_t begin, std::size_t end) {
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
    if (features == 0) return;
    if (!X.by_rows())
        return parallel_for(features, n_threads, [&](std::size_t k) {
            for (std::size_t i = 0; i < n; ++i)
                out[k * n + i] = X(static_cast<std::size_t>(rows[i]), first + k);
        });
    constexpr std::size_t ahead = 16;  // rows that are fetched while this one is copied
    const std::size_t last = first + features;
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (i + ahead < end) X.fetch(static_cast<std::size_t>(rows[i + ahead]), first, last);
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
    if (n_cuts == 1) {  // a sixth of the time
        const double cut = cuts[0];
        for (std::size_t i = 0; i < n; ++i)
            bins[i] = static_cast<Bin>(1 + (cut < x[i]) - (x[i] != x[i]));
        return;
    }
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
    std::vector<std::atomic<std::uint8_t>> occurs(n_cells * n_bins);
    std::atomic<bool> outside{false};
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end) {
        std::uint32_t cell = 0, bin = 0;
        for (std::size_t i = begin; i < end; ++i) {
            cell = std::max(cell, static_cast<std::uint32_t>(cells[i]));
            bin = std::max(bin, static_cast<std::uint32_t>(bins[i]));
        }
        if (cell >= n_cells || bin >= n_bins) {
            outside = true;
            return;
        }
        for (std::size_t i = begin; i < end; ++i) {
            auto& here = occurs[static_cast<std::size_t>(cells[i]) * n_bins + bins[i]];
            // Most were met before, and what nobody writes to all threads have near them.
            if (!here.load(std::memory_order_relaxed)) here.store(1, std::memory_order_relaxed);
        }
    });
    Joined joined;
    joined.fits = !outside;
    if (!joined.fits) return joined;
    std::vector<std::int32_t> number_of(occurs.size());
    for (std::size_t k = 0; k < occurs.size(); ++k) {
        if (!occurs[k].load(std::memory_order_relaxed)) continue;
        number_of[k] = static_cast<std::int32_t>(joined.pairs.size());
        joined.pairs.push_back(static_cast<std::int64_t>(k));
    }
    if (joined.pairs.size() > most) return joined;
    in_chunks(n, n_threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            number[i] = number_of[static_cast<std::size_t>(cells[i]) * n_bins + bins[i]];
    });
    return joined;
}

}  // namespace tcboost
