// Dual weights of codeword margins that are looked up by the cells of the rows, and never held: with
// the 63 bits of seven classes those of covertype would take more memory than its features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dense.hpp"
#include "histogram.hpp"
#include "weights.hpp"

namespace tcboost {

struct LookedUp {
    std::int64_t total = 0;   // of the weights in integers
    double least = HUGE_VAL;  // margin
    double error = 0.0;       // the weight of misclassified rows
};

// Whether another class than own has the best score M F. Of those that score alike it is the first,
// and rounding must not decide, so a later one has to be better by `tie`: with few stumps there often
// are some.
inline bool decoded_wrong(const double* F, const double* M, std::size_t n_classes,
                          std::size_t stride, std::size_t own, double tie) {
    const auto score = [=](std::size_t c) {
        return inner(F, M + c * stride, stride) - tie * static_cast<double>(c);
    };
    const double mine = score(own);
    bool wrong = false;
    for (std::size_t c = 0; c < n_classes; ++c) wrong |= c != own && score(c) > mine;
    return wrong;
}

// What `prefix_sums` gives for the weights weight exp(-z - top) in integers, 2^bits to one, at the
// codeword margins z of scores; no z is below -top, and the sum of the weights not above 2^60.
template <class Bin>
LookedUp look_up_and_sum(const Bin* cells, const CellScores<Bin>& scores, const std::int64_t* y,
                         const std::int8_t* M, std::size_t n_classes, const double* weight,
                         double top, int bits, double tie, const Groups& groups, std::size_t n,
                         std::size_t width, int n_threads, std::int64_t* out) {
    const std::size_t tables = tables_for(groups, n, std::max(n_threads, 1));
    Histogram<Bin> histogram(cells, y, M, groups, n, width, tables, tables);
    const std::size_t stride = scores.stride(), few = histogram.few();
    Vector code(n_classes * stride);
    for (std::size_t c = 0; c < n_classes; ++c)
        std::copy_n(M + c * width, width, code.data() + c * stride);
    const double scale = std::ldexp(1.0, bits);
    std::vector<LookedUp> met((n + few - 1) / few);
    parallel_for(met.size(), static_cast<int>(tables), [&](std::size_t c, std::size_t thread) {
        const std::size_t i = c * few, rows = std::min(few, n - i);
        Vector F(rows * stride), x(rows * width);
        std::vector<std::int64_t> u(rows * width);
        scores(i, rows, F.data());
        for (std::size_t r = 0; r < rows; ++r) {
            const auto own = static_cast<std::size_t>(y[i + r]);
            const double *of_row = F.data() + r * stride, *bit = code.data() + own * stride;
            if (decoded_wrong(of_row, code.data(), n_classes, stride, own, tie))
                met[c].error += weight[i + r];
            for (std::size_t k = 0; k < width; ++k)
                x[r * width + k] = -bit[k] * of_row[k] - top;
        }
        met[c].least = least_of(x.data(), x.size(), -1.0) - top;
        exp_all(x.data(), x.size());
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < width; ++k) x[r * width + k] *= weight[i + r];
        met[c].total = round_all(x.data(), x.size(), scale, u.data());
        histogram.add(i, rows, u.data(), 0, groups.n_groups, thread, thread);
    });
    histogram.prefix_sums(out, n_threads);
    LookedUp all;
    for (const LookedUp& part : met) {
        all.total += part.total, all.error += part.error;
        all.least = std::min(all.least, part.least);
    }
    return all;
}

}  // namespace tcboost
