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

}  // namespace tcboost
