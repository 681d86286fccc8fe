// Dual weights of pairwise margins on many rows, kept as products: exp(-z) is multiplied by what a
// round adds to z instead of being made anew. Without an exponential, and with one pass over the
// weights where there were two over the margins, a stage-wise round on covertype takes half as long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "dense.hpp"
#include "histogram.hpp"
#include "stumps.hpp"

namespace tcboost {

struct Multiplied {
    std::int64_t total = 0;  // of the weights in integers
    double largest = 0.0;    // of exp(-z)
    double error = 0.0;      // the weight of misclassified rows
    bool fits = true;        // every row has a class that there is
};

// A hypothesis with a code that a round adds to the margins.
template <class Bin>
struct Step {
    double coefficient;
    const std::int8_t* code;  // of each class
    const StumpSigns<Bin>& stump;

    // exp(-z) of its margins z, by the class of a row and what it says of the row: row
    // 2 c + (sign > 0), as wide as a row of E.
    std::vector<double> factors(std::size_t n_classes, std::size_t stride) const {
        const double right = std::exp(-2.0 * coefficient), wrong = std::exp(2.0 * coefficient);
        std::vector<double> table(2 * n_classes * stride, 1.0);
        for (std::size_t own = 0; own < n_classes; ++own)
            for (std::size_t k = 0; k < n_classes; ++k) {
                if (code[k] == code[own]) continue;
                table[(2 * own + (code[own] > 0)) * stride + k] = right;
                table[(2 * own + (code[own] <= 0)) * stride + k] = wrong;
            }
        return table;
    }
};

// Some rows: their classes and weights, and what the hypothesis says of them.
struct SignedRows {
    std::size_t n;
    const std::int64_t* y;
    const double* weight;
    const std::int8_t* signs;
};

// Rows of E, `stride` apart, whose own class and padding are zero, are multiplied; V gets their
// adjoint in integers, scale to one, and by_class its sums but for the own classes. A row counts as
// wrong if a number is above its bound, compared by their bits: that is the same for numbers that are
// not negative.
//
// Written in packs of four: left to itself the compiler takes the numbers apart for what is asked of
// them across a row, which takes three times as long.
template <std::size_t Stride>
TCBOOST_WIDE Multiplied multiply_rows(double* E, const SignedRows& rows, const double* factors,
                                      std::size_t any_stride, double scale,
                                      const std::int64_t* bounds, std::int64_t* V,
                                      std::int64_t* by_class) {
    using Integers = Pack<std::int64_t>;
    constexpr double shift = 0x1p52;  // a sum with it has the rounded integer in its last bits
    constexpr std::int64_t shift_bits = 0x433LL << 52;
    const std::size_t stride = Stride ? Stride : any_stride;
    Pack<double> shifts;
    Integers shifts_bits, largest{};
    fill(shifts, shift), fill(shifts_bits, shift_bits);
    Multiplied met;
    for (std::size_t r = 0; r < rows.n; ++r) {
        const auto own = static_cast<std::size_t>(rows.y[r]);
        const double* f = factors + (2 * own + (rows.signs[r] > 0)) * stride;
        const std::int64_t* bound = bounds + own * stride;
        const double unit = rows.weight[r] * scale;
        double* row = E + r * stride;
        std::int64_t *v = V + r * stride, *of_class = by_class + own * stride;
        Integers totals{}, above{};
        for (std::size_t k = 0; k < stride; k += 4) {
            Pack<double> e, factor;
            Integers bits, limit, n, sum;
            load(row + k, e), load(f + k, factor), load(bound + k, limit), load(of_class + k, sum);
            e = e * factor;
            std::memcpy(row + k, &e, sizeof e);
            std::memcpy(&bits, &e, sizeof e);
            above = above | (limit - bits);
            raise_to(largest, bits);
            e = unit * e + shifts;
            std::memcpy(&n, &e, sizeof e);
            n = n - shifts_bits;
            totals = totals + n;
            n = Integers{} - n;
            sum = sum + n;
            std::memcpy(v + k, &n, sizeof n);
            std::memcpy(of_class + k, &sum, sizeof sum);
        }
        const std::int64_t total = (totals[0] + totals[2]) + (totals[1] + totals[3]);
        v[own] = total;
        met.total += total;
        // Without a branch, which would be guessed wrong as often as a row is.
        const std::int64_t wrong = (above[0] | above[2]) | (above[1] | above[3]);
        met.error += rows.weight[r] * static_cast<double>(-(wrong >> 63));
    }
    std::int64_t most = 0;
    for (std::size_t l = 0; l < 4; ++l) most = std::max<std::int64_t>(most, largest[l]);
    std::memcpy(&met.largest, &most, sizeof most);
    return met;
}

// Multiply E, and write what `prefix_sums` gives for the weights weight E in integers, 2^bits to
// one: none of them may reach 2^51, nor their sum 2^60. A margin is zero up to rounding. Three
// classes or more.
template <class Bin>
Multiplied multiply_and_sum(double* E, const Step<Bin>& step, const double* weight, int bits,
                            const Bin* cells, const std::int64_t* y, const Groups& groups,
                            std::size_t n, std::size_t n_classes, int n_threads,
                            std::int64_t* out) {
    const std::size_t tables = tables_for(groups, n, std::max(n_threads, 1));
    Histogram<Bin> histogram(cells, y, nullptr, groups, n, n_classes, tables, tables);
    const std::size_t stride = histogram.stride(), few = histogram.few();
    const std::size_t chunks = (n + few - 1) / few;
    // Wrong is a class of larger score, or of the same score with a smaller index.
    std::vector<std::int64_t> bounds(n_classes * stride);
    for (std::size_t own = 0; own < n_classes; ++own)
        for (std::size_t c = 0; c < stride; ++c) {
            const double bound = c < own ? 1.0 - 1e-12 : 1.0 + 1e-12;
            std::memcpy(&bounds[own * stride + c], &bound, sizeof bound);
        }
    const auto multiply = stride == 4   ? multiply_rows<4>
                          : stride == 8 ? multiply_rows<8>
                                        : multiply_rows<0>;
    const std::vector<double> factors = step.factors(n_classes, stride);
    const double scale = std::ldexp(1.0, bits);
    std::vector<Multiplied> met(chunks);
    const std::size_t apart = few + 128;  // no line of the cache is of two threads
    std::vector<std::int8_t> all_signs(tables * apart);
    parallel_for(chunks, static_cast<int>(tables), [&](std::size_t c, std::size_t thread) {
        const std::size_t i = c * few;
        std::int8_t* signs = &all_signs[thread * apart];
        const SignedRows rows{std::min(few, n - i), y + i, weight + i, signs};
        // Here, where there are threads, and not before.
        std::uint64_t all = 0;
        for (std::size_t r = 0; r < rows.n; ++r)
            all = std::max(all, static_cast<std::uint64_t>(rows.y[r]));
        if (all >= n_classes) {
            met[c].fits = false;
            return;
        }
        step.stump.write(i, rows.n, signs);
        met[c] = multiply(E + i * stride, rows, factors.data(), stride, scale, bounds.data(),
                          histogram.room(thread), histogram.of_classes(thread));
        histogram.add_room(i, rows.n, 0, groups.n_groups, thread, thread);
    });
    histogram.prefix_sums(out, n_threads);
    // Rows of V sum to zero, so what the own class has follows. To add it row by row would wait for
    // what was stored just before.
    const auto n_bins = static_cast<std::size_t>(groups.offset[groups.n_features]);
    std::int64_t* by_class = out + n_bins * n_classes;
    for (std::size_t own = 0; own < n_classes; ++own, by_class += n_classes)
        by_class[own] = -std::accumulate(by_class, by_class + n_classes, std::int64_t{0});
    Multiplied all;
    for (const Multiplied& part : met) {
        all.total += part.total;
        all.largest = std::max(all.largest, part.largest);
        all.error += part.error;
        all.fits &= part.fits;
    }
    return all;
}

}  // namespace tcboost
