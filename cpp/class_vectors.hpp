// Class vectors of rules, solved feature by feature.
//
//     minimise  sum_i s_i CE(F(x_i), y_i) + r sum_t |v_t| + ridge / 2 sum_t |v_t|^2 + rho / 2 |b|^2,
//     F = b + sum_t v_t h_t
//
// A feature turns its values into cells, and a rule h_t is +1 on some cells of one feature, its right
// side, and -1 on the others. What is as long as the rows is the matrix p of probabilities. Sums over
// rows are made of integers, multiples of a power of two, so that they are exact: neither the order
// of the rows nor the number of threads changes a bit of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "passes.hpp"
#include "small_problem.hpp"
#include "threads.hpp"

namespace tcboost {

// Sweeps: every feature with rules in use is corrected once.
class Sweeper {
  public:
    // `used` are the rules in use, ascending.
    Sweeper(const LabelledCells& data, const std::vector<std::int64_t>& used, int n_threads,
            std::function<void()> checkpoint = {})
        : data_(data), n_threads_(n_threads), checkpoint_(std::move(checkpoint)) {
        std::vector<std::size_t> part_of_group(data.groups.size(), used.size());
        bool dense = false;
        for (std::size_t t = 0; t < used.size();) {
            const auto after = std::upper_bound(data.first.begin(), data.first.end(),
                                                static_cast<std::size_t>(used[t]));
            const auto j = static_cast<std::size_t>(after - data.first.begin()) - 1;
            std::vector<RulePlace> rules;
            std::vector<std::size_t> places;
            for (; t < used.size() && static_cast<std::size_t>(used[t]) < data.first[j + 1]; ++t) {
                rules.push_back(rule_place(data.features[j],
                                           static_cast<std::size_t>(used[t]) - data.first[j]));
                places.push_back(t);
            }
            dense = dense || !data.features[j].rows;
            const std::size_t g = data.group[j];
            if (g == data.groups.size()) {
                parts_.push_back({Segments(data.features[j], std::move(rules)), std::move(places), {}});
            } else if (part_of_group[g] == used.size()) {
                part_of_group[g] = parts_.size();
                parts_.push_back({Segments(data.groups[g].joint, {{data.bit[j], false}}), places, {}});
            } else {
                Part& part = parts_[part_of_group[g]];
                rules = std::move(part.segments.rules);
                rules.push_back({data.bit[j], false});
                part.segments = Segments(data.groups[g].joint, std::move(rules));
                part.places.push_back(places[0]);
            }
        }
        // Rows that are passed over in part only come last, and do not tell the level.
        if (!dense) parts_.insert(parts_.begin(), {Segments(), {}, {}});
        std::stable_partition(parts_.begin(), parts_.end(),
                              [](const Part& part) { return !part.sparse(); });
    }

    void sweep(const Penalty& o, double curvature, double* p, double* b, double* v) {
        const std::size_t stride = data_.stride;
        Factors last;
        for (Part& part : parts_) {
            if (checkpoint_) checkpoint_();
            if (part.labels.empty()) part.labels = label_sums(part);
            const Segments& segments = part.segments;
            const std::size_t size = segments.n * stride;
            std::vector<std::int64_t> sums(2 * size, 0);
            if (part.sparse()) {
                if (last.segments) pass(&last, nullptr, p, nullptr);
                last.segments = nullptr;
                sparse_pass(data_, nullptr, &segments, p, sums.data(), &sums[size]);
            } else {
                pass(last.segments ? &last : nullptr, &segments, p, sums.data());
            }
            std::vector<double> G(size), H(size), d(size);
            for (std::size_t k = 0; k < size; ++k) {
                G[k] = static_cast<double>(sums[k] - part.labels[k]) / data_.scale;
                H[k] = curvature * static_cast<double>(sums[size + k]) / data_.scale;
            }
            std::size_t held = segments.n;
            if (part.sparse()) held = segments.of_cell[segments.feature->main];
            std::vector<double> own = part.of_rules(v, stride);
            small_problem(segments, G.data(), H.data(), o, stride, held, b, own.data(), d.data());
            for (std::size_t t = 0; t < part.places.size(); ++t)
                std::copy_n(&own[t * stride], stride, v + part.places[t] * stride);
            for (double& x : d) x = exponential(x);
            Factors factors{&segments, std::move(d)};
            if (part.sparse()) {
                sparse_pass(data_, &factors, nullptr, p, nullptr, nullptr);
                continue;
            }
            last = std::move(factors);
        }
        if (last.segments) pass(&last, nullptr, p, nullptr);
    }

    // p = softmax(b + sum_t h_t v_t).
    void probabilities(const double* b, const double* v, double* p) const {
        const std::size_t stride = data_.stride, n = data_.n;
        std::vector<std::vector<double>> tables(parts_.size());
        std::vector<double> start(b, b + stride);
        for (std::size_t k = 0; k < parts_.size(); ++k) {
            const Segments& segments = parts_[k].segments;
            auto& table = tables[k];
            table.resize(segments.n * stride);
            segments.values(parts_[k].of_rules(v, stride).data(), stride, table.data());
            if (!parts_[k].sparse()) continue;
            // Of rows in the main cell there is nothing to look up.
            const std::size_t main = segments.of_cell[segments.feature->main];
            const std::vector<double> level(&table[main * stride], &table[main * stride] + stride);
            for (std::size_t c = 0; c < stride; ++c) {
                start[c] += level[c];
                for (std::size_t g = 0; g < segments.n; ++g) table[g * stride + c] -= level[c];
            }
        }
        const std::size_t tasks = (n + rows_of_task - 1) / rows_of_task;
        parallel_for(tasks, n * stride < 20000 ? 1 : n_threads_, [&](std::size_t task) {
            const std::size_t begin = task * rows_of_task, end = std::min(n, begin + rows_of_task);
            for (std::size_t i = begin; i < end; ++i)
                std::copy_n(start.data(), stride, p + i * stride);
            for (std::size_t part = 0; part < parts_.size(); ++part) {
                const Segments& segments = parts_[part].segments;
                if (!segments.feature) continue;
                const std::uint32_t* rows = segments.feature->rows;
                const std::uint16_t* cells = segments.feature->cells;
                const std::size_t size = segments.feature->n;
                std::size_t k = begin, last = end;
                if (rows) {
                    k = std::size_t(std::lower_bound(rows, rows + size, begin) - rows);
                    last = std::size_t(std::lower_bound(rows, rows + size, end) - rows);
                }
                for (; k < last; ++k) {
                    const double* from = &tables[part][segments.of_cell[cells[k]] * stride];
                    double* to = p + (rows ? rows[k] : k) * stride;
                    for (std::size_t c = 0; c < stride; ++c) to[c] += from[c];
                }
            }
            softmax_rows(p + begin * stride, end - begin, data_.n_classes, stride);
        });
    }

  private:
    struct Part {
        Segments segments;
        std::vector<std::size_t> places;  // of its rules among those in use
        std::vector<std::int64_t> labels;

        // The vectors of its rules, of those of all in use.
        std::vector<double> of_rules(const double* v, std::size_t stride) const {
            std::vector<double> own(places.size() * stride);
            for (std::size_t t = 0; t < places.size(); ++t)
                std::copy_n(v + places[t] * stride, stride, &own[t * stride]);
            return own;
        }
        bool sparse() const { return segments.feature && segments.feature->rows; }
    };

    // Sums of the weights by segment and label; of the segment that stays they are not needed.
    std::vector<std::int64_t> label_sums(const Part& part) const {
        const Segments& segments = part.segments;
        std::vector<std::int64_t> sums(segments.n * data_.stride, 0);
        const CellFeature* feature = segments.feature;
        const std::size_t n = feature ? feature->n : data_.n;
        for (std::size_t k = 0; k < n; ++k) {
            const std::size_t i = part.sparse() ? feature->rows[k] : k;
            const std::size_t g = feature ? segments.of_cell[feature->cells[k]] : 0;
            sums[g * data_.stride + std::size_t(data_.y[i])] += nearest(data_.weight[i] * data_.scale);
        }
        return sums;
    }

    void pass(const Factors* before, const Segments* segments, double* p, std::int64_t* sums) {
        const std::size_t size = segments ? segments->n * data_.stride : 0, n = data_.n;
        const auto threads = static_cast<std::size_t>(std::max(1, n_threads_));
        // A table for each thread must be worth it.
        if (threads == 1 || n * data_.stride < 20000 || n * data_.stride < 8 * threads * size) {
            dense_pass(data_, before, segments, 0, n, p, sums, sums + size);
            return;
        }
        const std::size_t parts = 4 * threads;
        std::vector<std::vector<std::int64_t>> own(threads);
        parallel_for(parts, n_threads_, [&](std::size_t k, std::size_t thread) {
            if (own[thread].empty()) own[thread].assign(2 * size, 0);
            std::int64_t* to = own[thread].data();
            dense_pass(data_, before, segments, n * k / parts, n * (k + 1) / parts, p, to, to + size);
        });
        for (const auto& one : own)
            for (std::size_t k = 0; k < one.size(); ++k) sums[k] += one[k];
    }

    const LabelledCells& data_;
    int n_threads_;
    std::function<void()> checkpoint_;  // throws where the work is to end
    std::vector<Part> parts_;
};

}  // namespace tcboost
