// Sums of integer dual weights over rows, by feature and bin.
//
// Integers make the sums exact, so they do not depend on the order of the rows, on how the
// rows are cut into blocks, or on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace tcboost {

// Call work(0), ..., work(n - 1) from up to n_threads threads, the caller among them.
template <class Work>
void parallel_for(std::size_t n, int n_threads, Work work) {
    std::atomic<std::size_t> next{0};
    auto run = [&] {
        for (std::size_t i = next++; i < n; i = next++) work(i);
    };
    const std::size_t extra = std::min<std::size_t>(n, std::max(n_threads, 1)) - (n > 0);
    std::vector<std::thread> threads;
    threads.reserve(extra);
    for (std::size_t i = 0; i < extra; ++i) {
        try {
            threads.emplace_back(run);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: go on with those there are
        }
    }
    run();
    for (auto& thread : threads) thread.join();
}

// out[offset[d] + b, k] = sum of V[i, k] over the rows with 1 <= bins[i, d] <= b, for b >= 1;
// row offset[d] holds the sum over the missing values, bin 0.
//
// bins is n x n_features by columns, V is n x width by rows, out is offset[n_features] x width.
template <class Bin>
void prefix_sums(const Bin* bins, const std::int64_t* V, const std::int64_t* offset,
                 std::size_t n, std::size_t n_features, std::size_t width, int n_threads,
                 std::int64_t* out) {
    // Below this much work a thread costs more than it saves.
    if (n * n_features * width < 100000) n_threads = 1;
    parallel_for(n_features, n_threads, [=](std::size_t d) {
        std::int64_t* sums = out + static_cast<std::size_t>(offset[d]) * width;
        const std::size_t n_bins = static_cast<std::size_t>(offset[d + 1] - offset[d]);
        std::fill(sums, sums + n_bins * width, 0);
        const Bin* column = bins + d * n;
        for (std::size_t i = 0; i < n; ++i) {
            std::int64_t* cell = sums + static_cast<std::size_t>(column[i]) * width;
            const std::int64_t* v = V + i * width;
            for (std::size_t k = 0; k < width; ++k) cell[k] += v[k];
        }
        for (std::size_t j = 2 * width; j < n_bins * width; ++j) sums[j] += sums[j - width];
    });
}

}  // namespace tcboost
