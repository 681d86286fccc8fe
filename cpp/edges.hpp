// Edges: minus the gradient of the loss by the class vector of every rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells.hpp"
#include "machine.hpp"
#include "threads.hpp"

namespace tcboost {

// V[cell] = sum over the rows of a cell of s (label - p), for a feature.
template <class Stride>
TCBOOST_INLINE void residuals_of(const LabelledCells& data, const CellFeature& feature,
                                 const double* p, const std::int64_t* total, Stride stride,
                                 std::int64_t* V) {
    constexpr std::size_t lanes = lanes_of(Stride());
    std::fill_n(V, feature.n_cells * stride, 0);
    for (std::size_t k = 0; k < feature.n; ++k) {
        const std::size_t i = feature.rows ? feature.rows[k] : k;
        const double s = data.weight[i] * data.scale;
        std::int64_t* to = V + feature.cells[k] * stride;
        const double* from = p + i * stride;
        for (std::size_t c = 0; c < stride; c += lanes) {
            std::int64_t whole[lanes];
            for (std::size_t l = 0; l < lanes; ++l) whole[l] = nearest(s * from[c + l]);
            for (std::size_t l = 0; l < lanes; ++l) to[c + l] -= whole[l];
        }
        to[data.y[i]] += nearest(s);
    }
    if (!feature.rows) return;
    std::int64_t* to = V + feature.main * stride;
    for (std::size_t c = 0; c < stride; ++c) to[c] = total[c];
    for (std::size_t cell = 0; cell < feature.n_cells; ++cell)
        if (cell != feature.main)
            for (std::size_t c = 0; c < stride; ++c) to[c] -= V[cell * stride + c];
}

// Of one feature the edges of all its rules, in units: their lengths, and those of rules in use,
// where `place` of a rule is not negative.
template <class Stride>
TCBOOST_INLINE void edges_of_feature(const CellFeature& feature, const std::int64_t* V,
                                     const std::int64_t* total, const std::int32_t* place,
                                     std::size_t n_classes, double unit, Stride stride,
                                     double* lengths, double* edges) {
    constexpr std::size_t lanes = lanes_of(Stride());
    const auto met = [&](std::size_t rule, const std::int64_t* right) TCBOOST_INLINED {
        double squares[lanes] = {};
        for (std::size_t c = 0; c < stride; c += lanes) {
            double edge[lanes];
            for (std::size_t k = 0; k < lanes; ++k)
                edge[k] = static_cast<double>(2 * right[c + k] - total[c + k]);
            for (std::size_t k = 0; k < lanes; ++k) squares[k] += edge[k] * edge[k];
        }
        double sum = 0.0;
        for (std::size_t k = 0; k < lanes; ++k) sum += squares[k];
        lengths[rule] = std::sqrt(sum) * unit;
        if (place[rule] < 0) return;
        double* to = edges + std::size_t(place[rule]) * n_classes;
        for (std::size_t c = 0; c < n_classes; ++c)
            to[c] = static_cast<double>(2 * right[c] - total[c]) * unit;
    };
    if (feature.kind == Kind::levels) {
        for (std::size_t t = 0; t < feature.n_rules(); ++t) met(t, V + t * stride);
        return;
    }
    // The values above a cut, from the last cut on, without and with the missing ones.
    const std::size_t n_cuts = feature.n_cuts();
    std::vector<std::int64_t> right(stride, 0), with_missing(V, V + stride);
    if (feature.missing) met(2 * n_cuts, V);
    for (std::size_t cut = n_cuts; cut-- > 0;) {
        const std::int64_t* above = V + (cut + 2) * stride;
        for (std::size_t c = 0; c < stride; ++c) right[c] += above[c];
        met(feature.missing ? 2 * cut : cut, right.data());
        if (!feature.missing) continue;
        for (std::size_t c = 0; c < stride; ++c) with_missing[c] += above[c];
        met(2 * cut + 1, with_missing.data());
    }
}

// The residuals are in V already without p.
TCBOOST_WIDE inline void residuals_and_edges(const LabelledCells& data, const CellFeature& feature,
                                             const double* p, const std::int64_t* total,
                                             const std::int32_t* place, std::int64_t* V,
                                             double* lengths, double* edges) {
    with_stride(data.stride, [&](auto stride) TCBOOST_INLINED {
        if (p) residuals_of(data, feature, p, total, stride, V);
        if (lengths)
            edges_of_feature(feature, V, total, place, data.n_classes, 1.0 / data.scale, stride,
                             lengths, edges);
    });
}

// The length of every edge, the edges of the rules in use (ascending), and that of the constant.
inline void edges_of(const LabelledCells& data, const double* p,
                     const std::vector<std::int64_t>& used, int n_threads, double* lengths,
                     double* edges, double* constant) {
    const std::size_t stride = data.stride;
    std::vector<std::int64_t> total(stride);
    {
        const std::vector<std::uint16_t> one(data.n, 0);
        const CellFeature all{Kind::levels, 1, false, one.data(), nullptr, data.n, 0};
        residuals_and_edges(data, all, p, nullptr, nullptr, total.data(), nullptr, nullptr);
    }
    for (std::size_t c = 0; c < data.n_classes; ++c)
        constant[c] = static_cast<double>(total[c]) / data.scale;
    std::vector<std::int32_t> place(data.first.back(), -1);
    for (std::size_t t = 0; t < used.size(); ++t)
        place[static_cast<std::size_t>(used[t])] = static_cast<std::int32_t>(t);
    if (data.n * stride * data.features.size() < 50000) n_threads = 1;
    const std::size_t n_groups = data.groups.size();
    parallel_for(n_groups + data.features.size(), n_threads, [&](std::size_t task) {
        if (task < n_groups) {
            const BitGroup& group = data.groups[task];
            std::vector<std::int64_t> joint(group.joint.n_cells * stride), V(3 * stride);
            residuals_and_edges(data, group.joint, p, nullptr, nullptr, joint.data(), nullptr,
                                nullptr);
            for (std::size_t bit = 0; bit < group.features.size(); ++bit) {
                std::fill(V.begin(), V.end(), 0);
                for (std::size_t k = 0; k < joint.size(); ++k)
                    V[(1 + ((k / stride) >> bit & 1)) * stride + k % stride] += joint[k];
                const std::size_t j = group.features[bit];
                residuals_and_edges(data, data.features[j], nullptr, total.data(),
                                    &place[data.first[j]], V.data(), lengths + data.first[j], edges);
            }
            return;
        }
        const std::size_t j = task - n_groups;
        const CellFeature& feature = data.features[j];
        if (feature.n_rules() == 0 || data.group[j] < n_groups) return;
        std::vector<std::int64_t> V(feature.n_cells * stride);
        residuals_and_edges(data, feature, p, total.data(), &place[data.first[j]], V.data(),
                            lengths + data.first[j], edges);
    });
}

// How far a model is from the best at most, over all rules, and over those that it has.
struct Gap {
    double all, own;
};

// By rule r |v| + ridge / 2 |v|^2 - <v, a>, what its edge could still gain, and the same of the
// intercept; all of it rounded up. Edges of rules in use and of the constant as above.
inline Gap gap_of(const LabelledCells& data, const Penalty& o, const double* b, const double* v,
                  const std::vector<std::int64_t>& used, double objective,
                  const std::vector<double>& lengths, const double* edges, const double* constant) {
    const std::size_t C = data.n_classes;
    const auto length = [&](const double* x) { return std::sqrt(product(x, x, C)); };
    double total = length(b), own = 0.0, slope = 0.0;
    std::vector<double> in_use;
    for (std::size_t t = 0; t < used.size(); ++t) {
        const double squares = product(v + t * C, v + t * C, C), size = std::sqrt(squares);
        own += o.penalty * size + o.ridge / 2.0 * squares - product(v + t * C, edges + t * C, C);
        total += size;
        in_use.push_back(lengths[std::size_t(used[t])]);
    }
    // Sums are of rounded numbers, and probabilities are rounded themselves.
    const double off = data.rounding() + 1e-15 * (1.0 + total);
    for (std::size_t c = 0; c < C; ++c) {
        const double x = constant[c] - o.intercept * b[c];
        slope += x * x;
    }
    slope = std::sqrt(slope) + off;
    own += slope * slope / (2.0 * o.intercept) + off * total + 1e-14 * (1.0 + objective);
    // A model that costs more than this is no better.
    const double most = std::min(objective, std::log(static_cast<double>(C))) / o.penalty;
    const auto gain = [&](const std::vector<double>& sizes) {
        double longest = 0.0, squares = 0.0;
        for (const double size : sizes) {
            const double over = std::max(size + off - o.penalty, 0.0);
            longest = std::max(longest, over), squares += over * over;
        }
        if (o.ridge <= 0.0) return most * longest;
        return std::min(most * longest, squares / (2.0 * o.ridge));
    };
    return {std::min(own + gain(lengths), objective), own + gain(in_use)};  // none is negative
}

// Rules that are not in use whose edges are above `least` and this share of the way from there to
// the longest; the longest first. Of an ordered feature only one between two in use, since they say
// nearly the same.
inline std::vector<std::int64_t> worthwhile(const LabelledCells& data,
                                            const std::vector<std::int64_t>& used,
                                            const double* lengths, double least, double share) {
    double longest = 0.0;
    const auto each = [&](auto work) {
        std::size_t k = 0;
        for (std::size_t j = 0; j < data.features.size(); ++j) {
            bool first = true;
            for (std::size_t t = data.first[j]; t < data.first[j + 1]; ++t) {
                if (k < used.size() && std::size_t(used[k]) == t)
                    ++k, first = true;
                else if (work(t, first || data.features[j].kind == Kind::levels))
                    first = false;
            }
        }
    };
    each([&](std::size_t t, bool) { return longest = std::max(longest, lengths[t]), false; });
    least = std::max(least, least + share * (longest - least) - 1e-12 * longest);
    std::vector<std::int64_t> found;
    each([&](std::size_t t, bool first) {
        if (!(lengths[t] > least)) return false;
        if (first)
            found.push_back(std::int64_t(t));
        else if (lengths[t] > lengths[std::size_t(found.back())])
            found.back() = std::int64_t(t);
        return true;
    });
    std::stable_sort(found.begin(), found.end(), [&](std::int64_t one, std::int64_t other) {
        return lengths[std::size_t(one)] > lengths[std::size_t(other)];
    });
    return found;
}

}  // namespace tcboost
