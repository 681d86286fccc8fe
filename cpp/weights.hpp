// Dual weights in integers, and what stage-wise boosting does with margins: passes over rows x
// margins, in threads over chunks of them. No result depends on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "machine.hpp"
#include "threads.hpp"

namespace tcboost {

constexpr std::size_t weights_chunk = 4096;  // margins, or rows of one pass, of one task

// x <- exp(x) for x <= 0, to about one unit in the last place; x counts as -700 at the least.
// Written out without a branch, as the compiler can then do several at a time instead
// of one by one. x = n ln 2 + r, and exp(r) by its Taylor series, |r| being at most ln(2) / 2.
//
// Each step waits for the one before it. Short loops have more numbers under way at a time than a
// long one has, and take two thirds of its time.
TCBOOST_WIDE inline void exp_all(double* x, std::size_t n) {
    constexpr double log2_e = 1.4426950408889634, ln2_high = 0x1.62e42fefa0000p-1,
                     ln2_low = 0x1.cf79abc9e3b3ap-40, shift = 0x1.8p52;
    constexpr std::size_t block = 128;
    double r[block], p[block], shifted[block];
    for (std::size_t i = 0; i < n; i += block, x += block) {
        const std::size_t m = std::min(block, n - i);
        for (std::size_t j = 0; j < m; ++j) {
            const double t = std::max(x[j], -700.0);
            shifted[j] = t * log2_e + shift;  // its last bits are n
            const double whole = shifted[j] - shift;
            r[j] = (t - whole * ln2_high) - whole * ln2_low;
            p[j] = 1.0 / 6227020800.0 * r[j] + 1.0 / 479001600.0;
        }
        for (std::size_t j = 0; j < m; ++j) {
            p[j] = p[j] * r[j] + 1.0 / 39916800.0;
            p[j] = p[j] * r[j] + 1.0 / 3628800.0;
            p[j] = p[j] * r[j] + 1.0 / 362880.0;
            p[j] = p[j] * r[j] + 1.0 / 40320.0;
            p[j] = p[j] * r[j] + 1.0 / 5040.0;
        }
        for (std::size_t j = 0; j < m; ++j) {
            p[j] = p[j] * r[j] + 1.0 / 720.0;
            p[j] = p[j] * r[j] + 1.0 / 120.0;
            p[j] = p[j] * r[j] + 1.0 / 24.0;
            p[j] = p[j] * r[j] + 1.0 / 6.0;
            p[j] = p[j] * r[j] + 0.5;
            p[j] = p[j] * r[j] * r[j] + r[j] + 1.0;
            std::uint64_t bits, n_bits;
            std::memcpy(&bits, p + j, 8);
            std::memcpy(&n_bits, shifted + j, 8);
            bits += n_bits << 52;
            std::memcpy(x + j, &bits, 8);
        }
    }
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

// Nonnegative numbers times scale rounded to the nearest integers; returns their sum.
TCBOOST_WIDE inline std::int64_t round_all(const double* x, std::size_t n, double scale,
                                           std::int64_t* out) {
    constexpr double shift = 0x1p52;
    std::int64_t shift_bits, total = 0;
    std::memcpy(&shift_bits, &shift, 8);
    if (-least_of(x, n, -1.0) * scale >= 0x1p51) {  // too large for that
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = static_cast<std::int64_t>(std::nearbyint(x[i] * scale));
            total += out[i];
        }
        return total;
    }
    for (std::size_t i = 0; i < n; ++i) {
        const double rounded = x[i] * scale + shift;  // its last bits are the integer
        std::int64_t bits;
        std::memcpy(&bits, &rounded, 8);
        out[i] = bits - shift_bits;
        total += out[i];
    }
    return total;
}

struct DualIntegers {
    double least = 0.0;      // of the margins
    double top = 0.0;        // the largest exponent, of which all others are measured
    int bits = 0;            // weights are u / 2^bits
    std::int64_t total = 0;  // the sum of u
};

inline std::size_t chunk_of_rows(std::size_t width) {
    return std::max<std::size_t>(1, weights_chunk / width);
}

inline double least_margin(const double* z, std::size_t size, int n_threads) {
    std::vector<double> parts((size + weights_chunk - 1) / weights_chunk);
    parallel_for(parts.size(), n_threads, [&](std::size_t c) {
        const std::size_t first = c * weights_chunk;
        parts[c] = least_of(z + first, std::min(weights_chunk, size - first));
    });
    return *std::min_element(parts.begin(), parts.end());
}

// Numbers in [0, 1] in integers: all times the same power of two, and in sum at most 2^60. They
// are what fill(i, m, x) writes to x, for m rows from i on, and go to where the sink wants them.
//
// The power follows from their sum. One chunk in 16 tells it well enough most times, and so they
// are rounded where they are made; if it was wrong, all is done again. To write and read them in
// between took a third as long as the rest.
template <class Fill, class Sink>
void to_integers(std::size_t n, std::size_t width, int n_threads, DualIntegers& dual, Fill fill,
                 Sink& sink) {
    const std::size_t rows = chunk_of_rows(width);
    const std::size_t chunks = (n + rows - 1) / rows;
    std::vector<double> sums(chunks);
    std::vector<std::int64_t> totals(chunks);
    const auto one = [&](std::size_t c, double scale, std::size_t thread) {
        const std::size_t i = c * rows, m = std::min(rows, n - i);
        std::vector<double> x(m * width);
        fill(i, m, x.data());
        sums[c] = sum_of(x.data(), m * width), totals[c] = 0;
        if (!(scale > 0 && sums[c] * scale < 0x1p61)) return;  // wrong: they may not fit
        totals[c] = round_all(x.data(), m * width, scale, sink.rows(i, thread));
        sink.done(i, m, thread);
    };
    const auto bits_of = [](double sum) {
        int exponent;
        std::frexp(sum * (1.0 + 1e-6), &exponent);  // a hair for the rounding
        return std::min(60 - exponent, 120);
    };
    const std::size_t some = (chunks + 15) / 16;
    parallel_for(some, n_threads, [&](std::size_t c) { one(c * 16, 0.0, 0); });
    double sum = std::accumulate(sums.begin(), sums.end(), 0.0) * double(chunks) / double(some);
    do {
        dual.bits = bits_of(sum);
        const double scale = std::ldexp(1.0, dual.bits);
        sink.clear();
        parallel_for(chunks, n_threads,
                     [&](std::size_t c, std::size_t thread) { one(c, scale, thread); });
        sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    } while (bits_of(sum) != dual.bits);
    dual.total = std::accumulate(totals.begin(), totals.end(), std::int64_t{0});
}

// A sink for integers that are wanted as they are.
struct InMemory {
    std::int64_t* u;
    std::size_t width;

    void clear() const {}
    std::int64_t* rows(std::size_t i, std::size_t) const { return u + i * width; }
    void done(std::size_t, std::size_t, std::size_t) const {}
};

// Of the exponential loss: u ~ weight_i / width exp(-z_ik).
template <class Sink>
DualIntegers dual_integers(const double* z, const double* weight, std::size_t n, std::size_t width,
                           int n_threads, Sink&& sink) {
    if (n * width < 20000) n_threads = 1;  // not worth a thread
    const bool even = std::all_of(weight, weight + n, [=](double w) { return w == weight[0]; });
    const double scale = static_cast<double>(width), log_even = std::log(weight[0] / scale);
    DualIntegers dual;
    dual.least = least_margin(z, n * width, n_threads);
    double top = log_even - dual.least;
    std::vector<double> logs(even ? 0 : n);
    for (std::size_t i = 0; i < logs.size(); ++i) {
        logs[i] = std::log(weight[i] / scale);
        top = std::max(i ? top : -HUGE_VAL, logs[i] - least_of(z + i * width, width));
    }
    dual.top = top;
    const auto fill = [&](std::size_t first, std::size_t m, double* x) {
        const double* from = z + first * width;
        const std::size_t run = even ? m * width : width;  // with the same weight
        for (std::size_t j = 0; j < m * width; j += run) {
            const double shift = even ? log_even : logs[first + j / width];
            for (std::size_t k = j; k < j + run; ++k) x[k] = shift - from[k] - top;
        }
        exp_all(x, m * width);
    };
    to_integers(n, width, n_threads, dual, fill, sink);
    return dual;
}

// rho_ik = o_y - o_c over the classes c != y_i, in ascending order: `Pairwise.apply`. Outputs of
// rows, and of classes, are so far apart.
template <class Number>
void pairwise_margins(const Number* outputs, std::ptrdiff_t of_rows, std::ptrdiff_t of_classes,
                      const std::int64_t* y, std::size_t n, std::size_t width, int n_threads,
                      Number* rho) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    parallel_for((n + weights_chunk - 1) / weights_chunk, n_threads, [=](std::size_t c) {
        with_constant(width, [=](auto w) {
            for (std::size_t i = c * weights_chunk; i < std::min(n, (c + 1) * weights_chunk); ++i) {
                const Number* of_row = outputs + std::ptrdiff_t(i) * of_rows;
                const auto o = [=](std::size_t c) { return of_row[std::ptrdiff_t(c) * of_classes]; };
                const auto own = static_cast<std::size_t>(y[i]);
                for (std::size_t k = 0; k < w; ++k)
                    rho[i * w + k] = static_cast<Number>(o(own) - o(k + (k >= own)));
            }
        });
    });
}

// Whether margins below zero, or zero for a class of smaller index than own, make a row wrong.
template <class Width>
TCBOOST_INLINE bool wrong_row(Width width, const double* of_row, std::int64_t own) {
    constexpr double bound[2] = {0.0, 5e-324};  // below the latter is what is not above zero
    bool wrong = false;
    for (std::size_t k = 0; k < width; ++k)
        wrong |= of_row[k] < bound[static_cast<std::int64_t>(k) < own];
    return wrong;
}

inline void pairwise_wrong(const double* z, const std::int64_t* y, std::size_t n,
                           std::size_t width, int n_threads, bool* wrong) {
    if (n * width < 100000) n_threads = 1;  // not worth a thread
    const std::size_t rows = chunk_of_rows(width);
    parallel_for((n + rows - 1) / rows, n_threads, [=](std::size_t c) {
        with_constant(width, [=](auto w) {
            for (std::size_t i = c * rows; i < std::min(n, (c + 1) * rows); ++i)
                wrong[i] = wrong_row(w, z + i * w, y[i]);
        });
    });
}

// F = the sum of table rows of `stride` scores, one for the cell of each of some groups. Stride is
// that where the compiler shall know it, or 0: the sums of a row then stay in registers.
template <std::size_t Stride, class Bin>
TCBOOST_WIDE void add_tables(const Bin* const* cells, const double* const* tables,
                             std::size_t n_used, std::size_t i, std::size_t rows,
                             std::size_t any_stride, double* F) {
    const std::size_t stride = Stride ? Stride : any_stride;
    constexpr std::size_t block = Stride ? Stride : 4;
    for (std::size_t last = i + rows; i < last; ++i, F += stride)
        for (std::size_t k = 0; k < stride; k += block) {
            double sum[block] = {};
            for (std::size_t u = 0; u < n_used; ++u) {
                const double* from = tables[u] + static_cast<std::size_t>(cells[u][i]) * stride + k;
                for (std::size_t j = 0; j < block; ++j) sum[j] += from[j];
            }
            for (std::size_t j = 0; j < block; ++j) F[k + j] = sum[j];
        }
}

// Scores of rows that are looked up: F = the sum of table rows, one for the cell of each group that
// is used. cells is n x groups by columns; table has rows for all cells of all groups, those of
// group g from first[g] on.
template <class Bin>
class CellScores {
   public:
    CellScores(const Bin* cells, const std::int64_t* first, const std::int64_t* used,
               std::size_t n_used, const double* table, std::size_t stride, std::size_t n)
        : stride_(stride), cells_(n_used), tables_(n_used) {
        for (std::size_t u = 0; u < n_used; ++u) {
            cells_[u] = cells + static_cast<std::size_t>(used[u]) * n;
            tables_[u] = table + static_cast<std::size_t>(first[used[u]]) * stride;
        }
    }

    std::size_t stride() const { return stride_; }

    // Of the rows from i on.
    void operator()(std::size_t i, std::size_t rows, double* F) const {
        const auto add = stride_ == 4    ? add_tables<4, Bin>
                         : stride_ == 8  ? add_tables<8, Bin>
                         : stride_ == 12 ? add_tables<12, Bin>
                                         : add_tables<0, Bin>;
        add(cells_.data(), tables_.data(), cells_.size(), i, rows, stride_, F);
    }

   private:
    std::size_t stride_;
    std::vector<const Bin*> cells_;
    std::vector<const double*> tables_;
};

}  // namespace tcboost
