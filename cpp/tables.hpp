// Scores of a stump model, compiled into one table for each feature it uses.
//
// A sum of stumps on one feature is a step function of it, so that a row costs one search and
// one table row a feature, however many stumps there are. The tables are integers, so that the
// sums are exact: classes that tie, tie here, and no order of the sum decides.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine.hpp"

namespace tcboost {

struct StumpTables {
    std::size_t n_used;           // features in use
    const std::int64_t* feature;  // which they are
    const std::int64_t* start;    // where their cuts start; n_used + 1 entries
    const double* cuts;           // ascending for each feature
    // For each feature a row for missing values, one for values up to the first cut, and one
    // for those above each cut; `stride` columns, a multiple of four.
    const std::int64_t* table;
    std::size_t stride;
    double unit;  // of the integers
};

// How many of the m cuts are below x; none for NaN. The step is an arithmetic one, as a branch
// would be mispredicted half of the time.
inline std::size_t count_below(const double* cuts, std::size_t m, double x) {
    const double* base = cuts;
    while (m > 1) {
        const std::size_t half = m / 2;
        base += base[half - 1] < x ? half : 0;
        m -= half;
    }
    return static_cast<std::size_t>(base - cuts) + (m == 1 && *base < x);
}

// Rows are taken in small blocks: first the places of all their values are looked up, feature
// by feature, so that all searches in a row are as long and the processor foresees their ends;
// then the table rows of a row are added up.
constexpr std::size_t block_rows = 64;

// out[i, k] = unit times the sum over u of table[place[u, i], k] for k < width. Stride is that of the table
// where the compiler shall know it, to keep the sums in registers, or zero.
//
// With `best` the k of the largest, the first on a tie, goes there instead: scores would cost as
// much to store as to compute.
template <std::size_t Stride>
void add_table_rows(const StumpTables& model, const std::uint32_t* place, std::size_t rows,
                    std::size_t width, double* out, std::int64_t* best) {
    const std::size_t stride = Stride ? Stride : model.stride;
    std::vector<std::int64_t> any(Stride ? 0 : stride);
    std::vector<double> scores(width);
    for (std::size_t i = 0; i < rows; ++i) {
        std::array<std::int64_t, Stride ? Stride : 1> fixed{};
        std::int64_t* sums = Stride ? fixed.data() : any.data();
        if (!Stride) std::fill(any.begin(), any.end(), 0);
        for (std::size_t u = 0; u < model.n_used; ++u) {
            const std::int64_t* step = model.table + place[u * block_rows + i] * stride;
            for (std::size_t k = 0; k < stride; ++k) sums[k] += step[k];
        }
        double* to = best ? scores.data() : out + i * width;
        for (std::size_t k = 0; k < width; ++k) to[k] = static_cast<double>(sums[k]) * model.unit;
        if (best) best[i] = std::max_element(to, to + width) - to;
    }
}

// out[i, k] = sum over the features of their tables at X[i, feature], for k < width.
// X has the strides by_row and by_column; out is n x width by rows, or best has n entries.
inline void stump_scores(const double* X, std::ptrdiff_t by_row, std::ptrdiff_t by_column,
                         std::size_t n, const StumpTables& model, std::size_t width,
                         int n_threads, double* out, std::int64_t* best) {
    if (n * model.n_used * model.stride < 100000) n_threads = 1;  // not worth a thread
    const auto add = model.stride == 4   ? add_table_rows<4>
                     : model.stride == 8 ? add_table_rows<8>
                                         : add_table_rows<0>;
    constexpr std::size_t task_rows = 16 * block_rows;
    parallel_for((n + task_rows - 1) / task_rows, n_threads, [&](std::size_t task) {
        std::vector<std::uint32_t> place(model.n_used * block_rows);
        const std::size_t end = std::min(n, (task + 1) * task_rows);
        for (std::size_t first = task * task_rows; first < end; first += block_rows) {
            const std::size_t rows = std::min(block_rows, end - first);
            std::size_t missing = 0;  // the first row of the table of u
            for (std::size_t u = 0; u < model.n_used; ++u) {
                const double* cuts = model.cuts + model.start[u];
                const auto m = static_cast<std::size_t>(model.start[u + 1] - model.start[u]);
                const double* x = X + static_cast<std::ptrdiff_t>(first) * by_row +
                                  static_cast<std::ptrdiff_t>(model.feature[u]) * by_column;
                for (std::size_t i = 0; i < rows; ++i, x += by_row)
                    place[u * block_rows + i] = static_cast<std::uint32_t>(
                        missing + (std::isnan(*x) ? 0 : 1 + count_below(cuts, m, *x)));
                missing += m + 2;
            }
            add(model, place.data(), rows, width, best ? nullptr : out + first * width,
                best ? best + first : nullptr);
        }
    });
}

}  // namespace tcboost
