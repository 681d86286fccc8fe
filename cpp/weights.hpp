// Dual weights in integers, and what stage-wise boosting does with margins: passes over rows x
// margins, in threads over chunks of them. No result depends on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "machine.hpp"

namespace tcboost {

constexpr std::size_t weights_chunk = 4096;  // margins, or rows of one pass, held at a time

// x <- exp(x) for x <= 0, to about one unit in the last place; x counts as -700 at the least.
// Written out without a branch, as the compiler can then do several at a time instead
// of one by one. x = n ln 2 + r, and exp(r) by its Taylor series, |r| being at most ln(2) / 2.
TCBOOST_WIDE inline void exp_all(double* x, std::size_t n) {
    constexpr double log2_e = 1.4426950408889634, ln2_high = 0x1.62e42fefa0000p-1,
                     ln2_low = 0x1.cf79abc9e3b3ap-40, shift = 0x1.8p52;
    for (std::size_t i = 0; i < n; ++i) {
        const double t = std::max(x[i], -700.0);
        const double shifted = t * log2_e + shift;  // its last bits are n
        const double whole = shifted - shift;
        const double r = (t - whole * ln2_high) - whole * ln2_low;
        double p = 1.0 / 6227020800.0;
        p = p * r + 1.0 / 479001600.0;
        p = p * r + 1.0 / 39916800.0;
        p = p * r + 1.0 / 3628800.0;
        p = p * r + 1.0 / 362880.0;
        p = p * r + 1.0 / 40320.0;
        p = p * r + 1.0 / 5040.0;
        p = p * r + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        p = p * r * r + r + 1.0;
        std::uint64_t bits, n_bits;
        std::memcpy(&bits, &p, 8);
        std::memcpy(&n_bits, &shifted, 8);
        bits += n_bits << 52;
        std::memcpy(x + i, &bits, 8);
    }
}

// Nonnegative numbers times scale, below 2^51, rounded to integers: to the nearest or down.
TCBOOST_WIDE inline std::int64_t round_all(const double* x, std::size_t n, double scale,
                                             bool down, std::int64_t* out) {
    constexpr double shift = 0x1p52;
    std::int64_t shift_bits, total = 0;
    std::memcpy(&shift_bits, &shift, 8);
    for (std::size_t i = 0; i < n; ++i) {
        const double value = x[i] * scale;
        const double rounded = value + shift;  // its last bits are the integer
        const double below = value - (rounded - shift), half = down ? below : 0.0;
        std::int64_t bits, sign;
        std::memcpy(&bits, &rounded, 8);
        std::memcpy(&sign, &half, 8);
        // One less where it is rounded up and shall not be: where that difference is negative.
        out[i] = bits - shift_bits - static_cast<std::int64_t>(std::uint64_t(sign) >> 63);
        total += out[i];
    }
    return total;
}

// The least of sign x.
TCBOOST_WIDE inline double least_of(const double* x, std::size_t n, double sign = 1.0) {
    double least[8];
    std::fill(least, least + 8, sign * x[0]);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t j = 0; j < 8; ++j) least[j] = std::min(least[j], sign * x[i + j]);
    for (; i < n; ++i) least[0] = std::min(least[0], sign * x[i]);
    return *std::min_element(least, least + 8);
}

// The sum of x, in an order that depends on n alone.
TCBOOST_WIDE inline double sum_of(const double* x, std::size_t n) {
    double sums[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t j = 0; j < 8; ++j) sums[j] += x[i + j];
    for (; i < n; ++i) sums[0] += x[i];
    return std::accumulate(sums, sums + 8, 0.0);
}

struct DualIntegers {
    double loss;         // of the cross-entropy; of the log-loss, the largest exponent
    int bits;            // weights are u / 2^bits
    std::int64_t total;  // the sum of u
};

// Turn the numbers in [0, 1] that u holds as doubles, with these sums by the chunk, into integers
// in place: all times the same power of two, and in sum at most 2^60.
inline DualIntegers to_integers(std::int64_t* u, std::size_t size, std::size_t chunk,
                                const std::vector<double>& sums, bool down, int n_threads) {
    int exponent;
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    std::frexp(sum * (1.0 + 1e-6), &exponent);  // a hair for the rounding
    const int bits = std::min(60 - exponent, 120);
    const double scale = std::ldexp(1.0, bits);
    std::vector<std::int64_t> totals(sums.size());
    parallel_for(sums.size(), n_threads, [&](std::size_t c) {
        const std::size_t first = c * chunk, n = std::min(chunk, size - first);
        std::vector<double> x(n);
        std::memcpy(x.data(), u + first, n * sizeof(double));
        if (-least_of(x.data(), n, -1.0) * scale < 0x1p51) {
            totals[c] = round_all(x.data(), n, scale, down, u + first);
            return;
        }
        for (std::size_t i = 0; i < n; ++i) {
            const double value = x[i] * scale;
            u[first + i] =
                static_cast<std::int64_t>(down ? std::floor(value) : std::nearbyint(value));
            totals[c] += u[first + i];
        }
    });
    return {0.0, bits, std::accumulate(totals.begin(), totals.end(), std::int64_t{0})};
}

inline std::size_t chunk_of_rows(std::size_t width) {
    return std::max<std::size_t>(1, weights_chunk / width);
}

// Of the log-loss: u ~ weight_i / width exp(-z_ik).
inline DualIntegers softmax_integers(const double* z, const double* weight, std::size_t n,
                                     std::size_t width, int n_threads, std::int64_t* u) {
    if (n * width < 20000) n_threads = 1;  // not worth a thread
    const std::size_t rows = chunk_of_rows(width);
    const bool even = std::all_of(weight, weight + n, [=](double w) { return w == weight[0]; });
    const double scale = static_cast<double>(width), log_even = std::log(weight[0] / scale);
    const auto exponents = [=](std::size_t c) {
        const std::size_t first = c * rows, m = std::min(rows, n - first);
        const double* from = z + first * width;
        std::vector<double> x(m * width);
        if (even)  // all in one loop
            for (std::size_t j = 0; j < m * width; ++j) x[j] = log_even - from[j];
        else
            for (std::size_t i = 0; i < m; ++i) {
                const double log_weight = std::log(weight[first + i] / scale);
                for (std::size_t k = 0; k < width; ++k)
                    x[i * width + k] = log_weight - from[i * width + k];
            }
        return x;
    };
    std::vector<double> tops((n + rows - 1) / rows), sums(tops.size());
    parallel_for(tops.size(), n_threads, [&](std::size_t c) {
        const std::size_t first = c * rows * width;
        if (even) {
            const std::size_t m = std::min(rows * width, n * width - first);
            tops[c] = log_even - least_of(z + first, m);
        } else {
            const std::vector<double> x = exponents(c);
            tops[c] = -least_of(x.data(), x.size(), -1.0);
        }
    });
    const double top = *std::max_element(tops.begin(), tops.end());
    parallel_for(sums.size(), n_threads, [&](std::size_t c) {
        std::vector<double> x = exponents(c);
        for (double& value : x) value -= top;
        exp_all(x.data(), x.size());
        sums[c] = sum_of(x.data(), x.size());
        std::memcpy(u + c * rows * width, x.data(), x.size() * sizeof(double));
    });
    DualIntegers dual = to_integers(u, n * width, rows * width, sums, false, n_threads);
    dual.loss = top;
    return dual;
}

// Of the cross-entropy sum_i weight_i log(1 + sum_k exp(-z_ik)): u ~ weight_i p_ik with
// p_ik = exp(-z_ik) / (1 + sum_k exp(-z_ik)), rounded down.
inline DualIntegers cross_entropy_integers(const double* z, const double* weight, std::size_t n,
                                           std::size_t width, int n_threads, std::int64_t* u) {
    if (n * width < 20000) n_threads = 1;  // not worth a thread
    const std::size_t rows = chunk_of_rows(width);
    std::vector<double> losses((n + rows - 1) / rows), sums(losses.size());
    parallel_for(losses.size(), n_threads, [&](std::size_t c) {
        const std::size_t first = c * rows, m = std::min(rows, n - first);
        std::vector<double> x(m * (width + 1)), tops(m);  // after the margins, those of own class
        for (std::size_t i = 0; i < m; ++i) {
            const double* from = z + (first + i) * width;
            double top = 0.0;
            for (std::size_t k = 0; k < width; ++k) top = std::max(top, -from[k]);
            for (std::size_t k = 0; k < width; ++k) x[i * width + k] = -from[k] - top;
            x[m * width + i] = -top;
            tops[i] = top;
        }
        exp_all(x.data(), x.size());
        for (std::size_t i = 0; i < m; ++i) {
            double total = x[m * width + i];
            for (std::size_t k = 0; k < width; ++k) total += x[i * width + k];
            const double share = weight[first + i] / total;
            for (std::size_t k = 0; k < width; ++k) x[i * width + k] *= share;
            losses[c] += weight[first + i] * (tops[i] + std::log(total));
        }
        sums[c] = sum_of(x.data(), m * width);
        std::memcpy(u + first * width, x.data(), m * width * sizeof(double));
    });
    DualIntegers dual = to_integers(u, n * width, rows * width, sums, true, n_threads);
    dual.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    return dual;
}

// out[i] = table[cells[i]]: a row of `width` outputs for each row.
template <class Bin>
void table_rows(const std::int8_t* table, const Bin* cells, std::size_t n, std::size_t width,
                int n_threads, std::int8_t* out) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    parallel_for((n + weights_chunk - 1) / weights_chunk, n_threads, [=](std::size_t c) {
        for (std::size_t i = c * weights_chunk; i < std::min(n, (c + 1) * weights_chunk); ++i)
            std::copy_n(table + static_cast<std::size_t>(cells[i]) * width, width,
                        out + i * width);
    });
}

// rho_ik = o_y - o_c over the classes c != y_i, in ascending order: `Pairwise.apply`.
inline void pairwise_margins(const std::int8_t* outputs, const std::int64_t* y, std::size_t n,
                             std::size_t width, int n_threads, std::int8_t* rho) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    parallel_for((n + weights_chunk - 1) / weights_chunk, n_threads, [=](std::size_t c) {
        for (std::size_t i = c * weights_chunk; i < std::min(n, (c + 1) * weights_chunk); ++i) {
            const std::int8_t* o = outputs + i * (width + 1);
            const auto own = static_cast<std::size_t>(y[i]);
            for (std::size_t k = 0; k < width; ++k)
                rho[i * width + k] = static_cast<std::int8_t>(o[own] - o[k + (k >= own)]);
        }
    });
}

struct MarginSums {
    std::int64_t wrong = 0, right = 0, neither = 0;  // sums of u where rho < 0, > 0, = 0
    int smallest = 128, largest = 0;                 // of |rho| where it is not 0
};

// Of a chunk; without a branch, for the sake of the compiler.
TCBOOST_WIDE inline MarginSums margin_sums_of(const std::int64_t* u, const std::int8_t* rho,
                                                std::size_t n) {
    std::int64_t wrong = 0, right = 0, all = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const std::int64_t value = rho[j];
        wrong += u[j] & -static_cast<std::int64_t>(value < 0);
        right += u[j] & -static_cast<std::int64_t>(value > 0);
        all += u[j];
    }
    std::uint8_t smallest = 128, largest = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const auto size = static_cast<std::uint8_t>(rho[j] < 0 ? -rho[j] : rho[j]);
        const std::uint8_t positive = size == 0 ? 128 : size;
        smallest = std::min(smallest, positive);
        largest = std::max(largest, size);
    }
    return {wrong, right, all - wrong - right, smallest, largest};
}

inline MarginSums margin_sums(const std::int64_t* u, const std::int8_t* rho, std::size_t size,
                              int n_threads) {
    if (size < 100000) n_threads = 1;  // not worth a thread
    std::vector<MarginSums> parts((size + weights_chunk - 1) / weights_chunk);
    parallel_for(parts.size(), n_threads, [&](std::size_t c) {
        const std::size_t first = c * weights_chunk;
        parts[c] = margin_sums_of(u + first, rho + first, std::min(weights_chunk, size - first));
    });
    MarginSums sums;
    for (const MarginSums& part : parts) {
        sums.wrong += part.wrong;
        sums.right += part.right;
        sums.neither += part.neither;
        sums.smallest = std::min(sums.smallest, part.smallest);
        sums.largest = std::max(sums.largest, part.largest);
    }
    return sums;
}

// z += coefficient rho.
inline void add_margins(double* z, double coefficient, const std::int8_t* rho, std::size_t size,
                        int n_threads) {
    if (size < 100000) n_threads = 1;  // not worth a thread
    parallel_for((size + weights_chunk - 1) / weights_chunk, n_threads, [=](std::size_t c) {
        for (std::size_t j = c * weights_chunk; j < std::min(size, (c + 1) * weights_chunk); ++j)
            z[j] += coefficient * rho[j];
    });
}

// Whether margins are below zero, and whether they are zero.
TCBOOST_WIDE inline void flag_margins(const double* z, std::size_t n, std::uint8_t* below,
                                        std::uint8_t* none) {
    for (std::size_t j = 0; j < n; ++j) below[j] = z[j] < 0.0;
    for (std::size_t j = 0; j < n; ++j) none[j] = z[j] == 0.0;
}

// Where pairwise margins are below zero, or zero for a class of smaller index.
inline void pairwise_wrong(const double* z, const std::int64_t* y, std::size_t n,
                           std::size_t width, int n_threads, bool* wrong) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    const std::size_t rows = chunk_of_rows(width);
    parallel_for((n + rows - 1) / rows, n_threads, [=](std::size_t c) {
        const std::size_t first = c * rows, m = std::min(rows, n - first);
        std::vector<std::uint8_t> below(m * width), none(m * width);
        flag_margins(z + first * width, m * width, below.data(), none.data());
        for (std::size_t i = 0; i < m; ++i) {
            const auto own = static_cast<std::size_t>(y[first + i]);
            std::uint8_t any = 0;
            for (std::size_t k = 0; k < width; ++k) any |= below[i * width + k];
            for (std::size_t k = 0; k < own; ++k) any |= none[i * width + k];
            wrong[first + i] = any != 0;
        }
    });
}

}  // namespace tcboost
