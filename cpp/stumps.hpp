// Stumps, as a search over the bins of the rows finds them: their signs, and which to take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace tcboost {

// out[i] = sign where the bin of row i is above the cut, or missing (0) with those to the right,
// else -sign. `bins` has the bins of the cells that the rows are in.
template <class Bin>
void stump_signs(const Bin* cells, std::size_t n, const std::int32_t* bins, std::size_t n_cells,
                 std::int64_t cut, bool missing_right, int sign, int n_threads,
                 std::int8_t* out) {
    std::vector<std::int8_t> table(n_cells);
    for (std::size_t c = 0; c < n_cells; ++c)
        table[c] = std::int8_t(bins[c] > cut || (missing_right && bins[c] == 0) ? sign : -sign);
    if (n < 100000) n_threads = 1;  // not worth a thread
    constexpr std::size_t chunk = 4096;
    parallel_for((n + chunk - 1) / chunk, n_threads, [&](std::size_t c) {
        // In locals: bytes written might overlap what is captured, and it takes four times as long.
        const std::int8_t* from = table.data();
        const Bin* cell = cells + c * chunk;
        std::int8_t* TCBOOST_RESTRICT to = out + c * chunk;
        for (std::size_t i = 0, m = std::min(chunk, n - c * chunk); i < m; ++i) to[i] = from[cell[i]];
    });
}

// A[j] = total - 2 (sums of the weights on the left of stump j): the edge of j with the sign +1.
// `left` is the row of the sums that has the values up to the cut, `missing` that of the missing
// ones where they are on the left; below zero there is none.
inline void stump_edges(const std::int64_t* sums, std::size_t width, const std::int64_t* left,
                        const std::int64_t* missing, std::size_t n, const std::int64_t* total,
                        std::int64_t* A) {
    for (std::size_t j = 0; j < n; ++j) {
        std::int64_t* a = A + j * width;
        std::copy_n(total, width, a);
        for (const std::int64_t row : {left[j], missing[j]})
            for (std::size_t k = 0; row >= 0 && k < width; ++k)
                a[k] -= 2 * sums[std::size_t(row) * width + k];
    }
}

// The length of each row of A (n x width), and of each of the parts of them between `starts` the
// longest row that is not `taken`: the longest `limit` of these, with their lengths. The first row
// on a tie; the length of a taken one is -1. In NumPy it took 30 microseconds instead of 4 for
// iris, a fifth of a round.
inline std::vector<std::pair<double, std::int64_t>> longest(
    const std::int64_t* A, std::size_t n, std::size_t width, const std::vector<bool>& taken,
    const std::int64_t* starts, std::size_t parts, std::size_t limit, double* lengths) {
    for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < width; ++k) {
            const auto a = static_cast<double>(A[j * width + k]);
            sum += a * a;
        }
        lengths[j] = std::sqrt(sum);
    }
    std::vector<std::pair<double, std::int64_t>> best;
    for (std::size_t d = 0; d < parts; ++d) {
        best.emplace_back(-2.0, 0);
        for (auto j = starts[d]; j < starts[d + 1]; ++j) {
            const double length = taken[std::size_t(j)] ? -1.0 : lengths[j];
            if (length > best.back().first) best.back() = {length, j};
        }
    }
    limit = std::min(limit, best.size());
    std::partial_sort(best.begin(), best.begin() + std::ptrdiff_t(limit), best.end(),
                      [](const auto& a, const auto& b) {
                          return a.first > b.first || (a.first == b.first && a.second < b.second);
                      });
    best.resize(limit);
    return best;
}

}  // namespace tcboost
