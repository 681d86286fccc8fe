// Passes over the rows: probabilities are multiplied, and summed up by segment; what they are worth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cells.hpp"
#include "machine.hpp"
#include "small_problem.hpp"
#include "threads.hpp"

namespace tcboost {

// What is to be multiplied into the probabilities of each segment.
struct Factors {
    const Segments* segments = nullptr;
    std::vector<double> of_segment;
};

// Of one row: p times its factors, to a sum of one, and none below its floor.
template <class Stride>
TCBOOST_INLINE void multiply_row(double* p, const double* factor, const double* floor,
                                 Stride stride) {
    constexpr std::size_t lanes = lanes_of(Stride());
    double sums[lanes] = {};
    for (std::size_t c = 0; c < stride; c += lanes) {
        double product[lanes];
        for (std::size_t k = 0; k < lanes; ++k) product[k] = p[c + k] * factor[c + k];
        for (std::size_t k = 0; k < lanes; ++k) p[c + k] = product[k];
        for (std::size_t k = 0; k < lanes; ++k) sums[k] += product[k];
    }
    const double sum = lanes == 2 ? sums[0] + sums[1]
                                  : (sums[0] + sums[lanes - 2]) + (sums[1] + sums[lanes - 1]);
    const double share = 1.0 / sum;
    for (std::size_t c = 0; c < stride; c += lanes) {
        double scaled[lanes];
        for (std::size_t k = 0; k < lanes; ++k) scaled[k] = p[c + k] * share;
        for (std::size_t k = 0; k < lanes; ++k)
            scaled[k] = scaled[k] > floor[c + k] ? scaled[k] : floor[c + k];
        for (std::size_t k = 0; k < lanes; ++k) p[c + k] = scaled[k];
    }
}

// P += s p and D += s p (1 - p) of one row.
template <class Stride>
TCBOOST_INLINE void add_row(const double* p, double s, std::int64_t* P, std::int64_t* D,
                            Stride stride) {
    constexpr std::size_t lanes = lanes_of(Stride());
    for (std::size_t c = 0; c < stride; c += lanes) {
        double mass[lanes], spread[lanes];
        std::int64_t whole[lanes], apart[lanes];
        for (std::size_t k = 0; k < lanes; ++k) mass[k] = s * p[c + k];
        for (std::size_t k = 0; k < lanes; ++k) spread[k] = mass[k] - mass[k] * p[c + k];
        for (std::size_t k = 0; k < lanes; ++k) whole[k] = nearest(mass[k]);
        for (std::size_t k = 0; k < lanes; ++k) apart[k] = nearest(spread[k]);
        for (std::size_t k = 0; k < lanes; ++k) P[c + k] += whole[k];
        for (std::size_t k = 0; k < lanes; ++k) D[c + k] += apart[k];
    }
}

template <class Stride>
TCBOOST_INLINE void pass_of(const LabelledCells& data, const Factors* before,
                            const Segments* segments, std::size_t begin, std::size_t end, double* p,
                            Stride stride, std::int64_t* P, std::int64_t* D) {
    static constexpr std::uint16_t none[1] = {0};
    const auto cells_of = [](const Segments* of) {
        return of && of->feature ? of->feature->cells : nullptr;
    };
    const auto segments_of = [](const Segments* of) {
        return of && of->feature ? of->of_cell.data() : none;
    };
    const std::uint16_t *old_cells = cells_of(before ? before->segments : nullptr),
                        *cells = cells_of(segments),
                        *old_segment = segments_of(before ? before->segments : nullptr),
                        *segment = segments_of(segments);
    const double *factors = before ? before->of_segment.data() : nullptr, *weight = data.weight,
                 *floor = data.floor.data(), scale = data.scale;
    for (std::size_t i = begin; i < end; ++i) {
        double* row = p + i * stride;
        if (before)
            multiply_row(row, factors + old_segment[old_cells ? old_cells[i] : 0] * stride, floor,
                         stride);
        if (!segments) continue;
        const std::size_t at = segment[cells ? cells[i] : 0] * stride;
        add_row(row, weight[i] * scale, P + at, D + at, stride);
    }
}

// Rows from begin to end: multiply by what the last feature left, then sums of this one by segment.
TCBOOST_WIDE inline void dense_pass(const LabelledCells& data, const Factors* before,
                                    const Segments* segments, std::size_t begin, std::size_t end,
                                    double* p, std::int64_t* P, std::int64_t* D) {
    with_stride(data.stride, [&](auto stride) TCBOOST_INLINED {
        pass_of(data, before, segments, begin, end, p, stride, P, D);
    });
}

// The same of the rows of a feature that are not in its main cell: either sums, or factors.
TCBOOST_WIDE inline void sparse_pass(const LabelledCells& data, const Factors* before,
                                     const Segments* segments, double* p, std::int64_t* P,
                                     std::int64_t* D) {
    const Segments& here = before ? *before->segments : *segments;
    const CellFeature& feature = *here.feature;
    with_stride(data.stride, [&](auto stride) TCBOOST_INLINED {
        for (std::size_t k = 0; k < feature.n; ++k) {
            const std::size_t i = feature.rows[k], g = here.of_cell[feature.cells[k]];
            double* row = p + i * stride;
            if (before) {
                multiply_row(row, &before->of_segment[g * stride], data.floor.data(), stride);
            } else {
                add_row(row, data.weight[i] * data.scale, P + g * stride, D + g * stride, stride);
            }
        }
    });
}

// The softmax of the scores F of a row, in place.
template <class Stride>
TCBOOST_INLINE void softmax_row(double* F, std::size_t n_classes, Stride stride) {
    double top = F[0];
    for (std::size_t c = 1; c < n_classes; ++c) top = F[c] > top ? F[c] : top;
    TCBOOST_INDEPENDENT
    for (std::size_t c = 0; c < stride; ++c) F[c] = exponential(F[c] - top);
    double sum = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) sum += F[c];
    const double share = 1.0 / sum;
    for (std::size_t c = 0; c < stride; ++c) {
        const double p = F[c] * share;
        F[c] = c < n_classes ? (p < least_probability ? least_probability : p) : 0.0;
    }
}

TCBOOST_WIDE inline void softmax_rows(double* F, std::size_t rows, std::size_t n_classes,
                                      std::size_t padded) {
    with_stride(padded, [&](auto stride) TCBOOST_INLINED {
        for (std::size_t i = 0; i < rows; ++i) softmax_row(F + i * stride, n_classes, stride);
    });
}

struct Measures {
    double loss = 0.0;        // cross-entropy
    double error = 0.0;       // weight of the rows that another class is predicted for
    double least = std::numeric_limits<double>::infinity();  // margin, own less best other score
    double spread = 0.0;      // mean of the largest 2 p (1 - p) of a row
};

inline Measures measures(const LabelledCells& data, const double* p, int n_threads) {
    const std::size_t tasks = (data.n + rows_of_task - 1) / rows_of_task;
    std::vector<Measures> found(tasks);
    if (data.n * data.stride < 20000) n_threads = 1;
    parallel_for(tasks, n_threads, [&](std::size_t task) {
        Measures& m = found[task];
        const std::size_t begin = task * rows_of_task;
        const std::size_t end = std::min(data.n, begin + rows_of_task);
        for (std::size_t i = begin; i < end; ++i) {
            const double* row = p + i * data.stride;
            const auto own = std::size_t(data.y[i]);
            double other = 0.0, spread = 0.0;
            bool wrong = false;
            for (std::size_t c = 0; c < data.n_classes; ++c) {
                spread = std::max(spread, row[c] * (1.0 - row[c]));
                if (c == own) continue;
                other = std::max(other, row[c]);
                wrong = wrong || row[c] > row[own] || (row[c] == row[own] && c < own);
            }
            const double s = data.weight[i];
            m.loss -= s * std::log(row[own]);
            m.error += wrong ? s : 0.0;
            m.spread += 2.0 * s * spread;
            m.least = std::min(m.least, row[own] / other);
        }
    });
    Measures all;
    for (const Measures& m : found) {
        all.loss += m.loss, all.error += m.error, all.spread += m.spread;
        all.least = std::min(all.least, m.least);
    }
    all.least = std::log(all.least);
    return all;
}

}  // namespace tcboost
