// A draft at a price, in one call: what `boosting.Run.boost` does for stumps with class vectors and
// the cross-entropy, number for number (but for the rounding of one sum, `over`). On few rows most
// of a round is spent between kernels: `TCBoostClassifier()` takes 26 ms on iris instead of 40.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "descent.hpp"
#include "histogram.hpp"
#include "stumps.hpp"

namespace tcboost {

// Rows in their own order, and all stumps on them: `StumpOracle`.
template <class Bin>
struct StumpRows {
    const Bin* cells;
    Groups groups;
    const std::int64_t* bins_of;  // where the bins of the cells of a feature start, in groups.place
    const std::int64_t *feature, *cut;
    const bool* missing_right;
    const std::int64_t *left, *missing;         // rows of prefix sums: see `stump_edges`,
    std::pair<std::size_t, std::size_t> total;  // and those that make the sum of all
    std::size_t n_stumps;
    const std::int64_t* starts;  // of the stumps of each of so many features
    std::size_t parts;
    const std::int64_t* y;
    const double* weight;

    StumpSigns<Bin> signs(std::size_t n, std::size_t j) const {
        const auto d = std::size_t(feature[j]);
        return {cells + std::size_t(groups.group[d]) * n, groups.place + bins_of[d],
                std::size_t(bins_of[d + 1] - bins_of[d]), cut[j], missing_right[j], 1};
    }
};

struct DraftRule {
    double price, ridge, free_ridge;
    double tol, share;         // of the gap, and what a master may leave of it
    double loose;              // a gap of that part of the loss ends the draft
    int sweeps, last_sweeps;   // of a round, and when there are no more columns
    std::size_t columns, one;  // at the most; and one more in a round for so many
};

template <class Bin>
class Draft {
  public:
    // F is C x n by rows of class, in the order of `scored`, where row i has the place place[i]; it
    // changes. H and W are of the stumps so far, and so is what `descend` has told of them.
    Draft(const StumpRows<Bin>& rows, const ScoredRows& scored, const std::int64_t* place,
          const DraftRule& rule, double* F, std::vector<std::int64_t> stumps,
          std::vector<std::int8_t> H, std::vector<double> W, std::array<double, 4> told)
        : stumps(std::move(stumps)), H(std::move(H)), W(std::move(W)), told(told), rows_(rows),
          scored_(scored), place_(place), rule_(rule), F_(F), z_(scored.n * (scored.n_classes - 1)),
          sums_((std::size_t(rows.groups.offset[rows.groups.n_features]) + scored.n_classes) *
                scored.n_classes),
          A_(rows.n_stumps * scored.n_classes), lengths_(rows.n_stumps), signs_(scored.n),
          taken_(rows.n_stumps) {
        for (const std::int64_t j : this->stumps) taken_[std::size_t(j)] = true;
    }

    void run() {
        for (;;) {
            const std::size_t t = stumps.size();
            const std::size_t room = rule_.columns > t ? rule_.columns - t : 0;
            const bool done = choose(std::min(room, std::max<std::size_t>(1, t / rule_.one)));
            if (done || room == 0 || chosen_.empty()) break;
            for (const std::int64_t j : chosen_) add(j);
            descend(rule_.share * rule_.tol, rule_.sweeps);
        }
        const double tol = rule_.share * std::max(rule_.tol, rule_.loose * loss_);
        if (!stumps.empty() && told[0] > tol) descend(tol, rule_.last_sweeps);
    }

    std::vector<std::int64_t> stumps;
    std::vector<std::int8_t> H;  // n x stumps by columns
    std::vector<double> W;       // stumps x C
    std::array<double, 4> told;

  private:
    StumpRows<Bin> rows_;
    ScoredRows scored_;
    const std::int64_t* place_;
    DraftRule rule_;
    double* F_;
    std::vector<double> z_;
    std::vector<std::int64_t> sums_, A_;
    std::vector<double> lengths_;
    std::vector<std::int8_t> signs_;
    std::vector<bool> taken_;
    std::vector<std::int64_t> chosen_;
    double loss_ = 0;  // with the ridge

    // Choose up to `limit` stumps, as `VectorCode.choose`; whether the gap is small enough, by
    // `Run._price`.
    bool choose(std::size_t limit) {
        const std::size_t n = scored_.n, C = scored_.n_classes, K = C - 1;
        for (std::size_t i = 0; i < n; ++i) {
            const double* of_row = F_ + place_[i];
            const auto own = std::size_t(rows_.y[i]);
            for (std::size_t k = 0; k < K; ++k)
                z_[i * K + k] = of_row[own * n] - of_row[(k + (k >= own)) * n];
        }
        const DualIntegers dual =
            weigh_and_sum(rows_.cells, z_.data(), rows_.weight, true, NAN, rows_.y, nullptr,
                          rows_.groups, n, C, scored_.n_threads, sums_.data());
        stump_edges(sums_.data(), C, rows_.left, rows_.missing, rows_.n_stumps, rows_.total,
                    A_.data());
        const auto found = longest(A_.data(), rows_.n_stumps, C, taken_, rows_.starts, rows_.parts,
                                   std::max<std::size_t>(1, limit), lengths_.data());
        const double scale = std::ldexp(1.0, dual.bits), price = rule_.price;
        const double floor = limit > 0 ? price * scale : INFINITY;
        const double constant = lengths_[0], edge = found[0].first;
        const bool as_good = constant > floor && edge - constant <= 1e-2 * price * scale;
        chosen_.clear();
        if ((as_good && !taken_[0]) || (rule_.free_ridge > 0 && stumps.empty())) {
            chosen_.push_back(0);
        } else {
            const double level = floor + 0.5 * std::max(0.0, edge - floor);
            for (const auto& [length, j] : found)
                if (length > floor && length >= level) chosen_.push_back(j);
        }
        const double used = told[1], squares = told[2], slope = told[3];
        const double margin = std::max(1.0, 1.0 - dual.least);
        double offset = dual.loss + slope - 2.0 * double(n * K) * margin / scale;
        if (rule_.free_ridge > 0) offset -= std::pow(constant / scale, 2) / (2 * rule_.free_ridge);
        loss_ = dual.loss + squares / 2;
        double most = 0, over = 0;
        for (const double length : lengths_) {
            const double above = std::max(0.0, length / scale - price);
            most = std::max(most, above);
            over += above * above;
        }
        double gain = std::log(double(C)) / price * most;
        if (rule_.ridge > 0) gain = std::min(gain, over / (2 * rule_.ridge));
        const double gap = loss_ + price * used - offset + gain;
        return gap <= std::max(rule_.tol, rule_.loose * loss_);
    }

    void add(std::int64_t j) {
        const std::size_t n = scored_.n;
        rows_.signs(n, std::size_t(j)).write(0, n, signs_.data());
        H.resize(H.size() + n);
        std::int8_t* h = H.data() + H.size() - n;
        for (std::size_t i = 0; i < n; ++i) h[place_[i]] = signs_[i];
        W.resize(W.size() + scored_.n_classes);
        stumps.push_back(j);
        taken_[std::size_t(j)] = true;
    }

    void descend(double tol, int sweeps) {
        const VectorSteps steps(W.data(), scored_.n_classes, rule_.ridge, rule_.free_ridge, nullptr);
        told = tcboost::descend(scored_, H.data(), stumps.size(), steps, F_, INFINITY, rule_.price,
                                tol, sweeps);
    }
};

}  // namespace tcboost
