// Dual weights in integers, and what stage-wise boosting does with margins: passes over rows x
// margins, in threads over chunks of them. No result depends on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "histogram.hpp"

namespace tcboost {

constexpr std::size_t weights_chunk = 4096;  // margins, or rows of one pass, held at a time

// x <- exp(x) for x <= 0, to about one unit in the last place; x counts as -700 at the least.
// Written out without a branch, as the compiler can then do several at a time: 5 times as fast
// as one by one. x = n ln 2 + r, and exp(r) by its Taylor series, |r| being at most ln(2) / 2.
TCBOOST_CLONES inline void exp_all(double* x, std::size_t n) {
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

// Nonnegative numbers below 2^51 times scale, rounded to integers: to the nearest or down.
TCBOOST_CLONES inline std::int64_t round_all(const double* x, std::size_t n, double scale,
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

struct DualIntegers {
    double top;          // the largest exponent, or the loss
    int bits;            // weights are u / 2^bits
    std::int64_t total;  // the sum of u
};

// Integers u of the nonnegative numbers that u holds as doubles, none above `largest` <= 1:
// scaled by a power of two so that they sum to at most 2^60. That is counted in integers, and so
// it depends on no order of a sum. Each chunk's numbers are read before its integers are written.
inline DualIntegers to_integers(std::int64_t* u, std::size_t size, double largest, bool down,
                                int n_threads) {
    const auto bit_length = [](std::uint64_t x) {
        int n = 0;
        for (; x; x >>= 1) ++n;
        return n;
    };
    const std::size_t n_chunks = (size + weights_chunk - 1) / weights_chunk;
    std::vector<std::int64_t> sums(n_chunks);
    const auto pass = [&](int bits, bool floor, bool keep) {
        const double scale = std::ldexp(1.0, bits);
        const bool small = std::ldexp(largest, bits) < 0x1p51;
        parallel_for(n_chunks, n_threads, [&](std::size_t c) {
            const std::size_t first = c * weights_chunk, n = std::min(weights_chunk, size - first);
            double x[weights_chunk];
            std::int64_t spare[weights_chunk];
            std::memcpy(x, u + first, n * sizeof(double));
            std::int64_t* out = keep ? u + first : spare;
            if (small) {
                sums[c] = round_all(x, n, scale, floor, out);
                return;
            }
            sums[c] = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const double value = x[i] * scale;
                out[i] = static_cast<std::int64_t>(floor ? std::floor(value)
                                                         : std::nearbyint(value));
                sums[c] += out[i];
            }
        });
        std::int64_t total = 0;
        for (const std::int64_t sum : sums) total += sum;
        return total;
    };
    const int coarse = 60 - bit_length(size);
    const std::int64_t rough = pass(coarse, false, false);
    const int bits = coarse + 60 - bit_length(static_cast<std::uint64_t>(rough) + size);
    return {0.0, bits, pass(bits, down, true)};
}

// Of the log-loss: u ~ exp(log_weight_i - z_ik), and the largest of these exponents.
inline DualIntegers softmax_integers(const double* z, const double* log_weight, std::size_t n,
                                     std::size_t width, int n_threads, std::int64_t* u) {
    if (n * width < 20000) n_threads = 1;  // not worth a thread
    const std::size_t rows = std::max<std::size_t>(1, weights_chunk / width);
    const std::size_t n_chunks = (n + rows - 1) / rows;
    std::vector<double> tops(n_chunks);
    const bool even = std::all_of(log_weight, log_weight + n,
                                  [=](double w) { return w == log_weight[0]; });
    // The exponents of a chunk, at the same place in an array that holds as many.
    const auto exponents = [=](std::size_t c, double* x) {
        const std::size_t first = c * rows, m = std::min(rows, n - first);
        const double* from = z + first * width;
        if (even)  // in one loop: 3 times as fast
            for (std::size_t j = 0; j < m * width; ++j) x[j] = log_weight[0] - from[j];
        else
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t k = 0; k < width; ++k)
                    x[i * width + k] = log_weight[first + i] - from[i * width + k];
        return m * width;
    };
    parallel_for(n_chunks, n_threads, [&](std::size_t c) {
        std::vector<double> x(rows * width);
        const std::size_t m = exponents(c, x.data());
        tops[c] = *std::max_element(x.data(), x.data() + m);
    });
    const double top = *std::max_element(tops.begin(), tops.end());
    parallel_for(n_chunks, n_threads, [&](std::size_t c) {
        std::vector<double> x(rows * width);
        const std::size_t m = exponents(c, x.data());
        for (std::size_t j = 0; j < m; ++j) x[j] -= top;
        exp_all(x.data(), m);
        std::memcpy(u + c * rows * width, x.data(), m * sizeof(double));
    });
    DualIntegers dual = to_integers(u, n * width, 1.0, false, n_threads);
    dual.top = top;
    return dual;
}

// Of the cross-entropy sum_i weight_i log(1 + sum_k exp(-z_ik)): its value, as `top`, and
// u ~ weight_i p_ik with p_ik = exp(-z_ik) / (1 + sum_k exp(-z_ik)), rounded down.
inline DualIntegers cross_entropy_integers(const double* z, const double* weight, std::size_t n,
                                           std::size_t width, int n_threads, std::int64_t* u) {
    if (n * width < 20000) n_threads = 1;  // not worth a thread
    const std::size_t rows = std::max<std::size_t>(1, weights_chunk / width);
    const std::size_t n_chunks = (n + rows - 1) / rows;
    std::vector<double> losses(n_chunks, 0.0);
    parallel_for(n_chunks, n_threads, [&](std::size_t c) {
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
        std::memcpy(u + first * width, x.data(), m * width * sizeof(double));
    });
    DualIntegers dual = to_integers(u, n * width, 1.0, true, n_threads);
    for (const double loss : losses) dual.top += loss;
    return dual;
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

// In four tables in turn: a table would have to wait for its last sum to be stored.
inline MarginSums margin_sums(const std::int64_t* u, const std::int8_t* rho, std::size_t size,
                              int n_threads) {
    if (size < 100000) n_threads = 1;  // not worth a thread
    struct Tables {
        std::int64_t sum[4][256] = {};
        bool seen[256] = {};
    };
    constexpr std::size_t rows = 16 * weights_chunk;
    std::vector<Tables> parts((size + rows - 1) / rows);
    parallel_for(parts.size(), n_threads, [&](std::size_t c) {
        Tables t;
        for (std::size_t j = c * rows; j < std::min(size, (c + 1) * rows); ++j) {
            const auto value = static_cast<std::uint8_t>(rho[j]);
            t.sum[j % 4][value] += u[j];
            t.seen[value] = true;
        }
        parts[c] = t;
    });
    MarginSums sums;
    for (const Tables& t : parts)
        for (int value = -128; value < 128; ++value) {
            const int place = value & 255;
            std::int64_t& sum = value < 0 ? sums.wrong : value > 0 ? sums.right : sums.neither;
            for (const auto& table : t.sum) sum += table[place];
            if (value && t.seen[place]) {
                sums.smallest = std::min(sums.smallest, std::abs(value));
                sums.largest = std::max(sums.largest, std::abs(value));
            }
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

// Where pairwise margins are below zero, or zero for a class of smaller index.
inline void pairwise_wrong(const double* z, const std::int64_t* y, std::size_t n,
                           std::size_t width, int n_threads, bool* wrong) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    parallel_for((n + weights_chunk - 1) / weights_chunk, n_threads, [=](std::size_t c) {
        for (std::size_t i = c * weights_chunk; i < std::min(n, (c + 1) * weights_chunk); ++i) {
            const auto own = static_cast<std::size_t>(y[i]);
            bool any = false;
            for (std::size_t k = 0; k < width; ++k) {
                const double margin = z[i * width + k];
                any |= (margin < 0.0) | ((margin == 0.0) & (k < own));
            }
            wrong[i] = any;
        }
    });
}

}  // namespace tcboost
