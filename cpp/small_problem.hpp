// The small problem of a feature: its rules in use, by the segments of cells that they tell apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "machine.hpp"

namespace tcboost {

// The rules in use of one feature, and the segments of its cells that they tell apart. An ordered
// feature has the segments between its cuts, ascending, then that of missing values; levels have
// first that of all others, then their own.
struct Segments {
    const CellFeature* feature = nullptr;  // none: one segment of all rows
    std::vector<RulePlace> rules;
    std::vector<std::size_t> right;  // of each rule: its first segment on the right
    std::vector<std::uint16_t> of_cell;
    std::size_t n = 1;

    Segments() = default;
    Segments(const CellFeature& f, std::vector<RulePlace> used) : feature(&f), rules(std::move(used)) {
        of_cell.assign(f.n_cells, 0);
        right.resize(rules.size());
        if (f.kind == Kind::bits) {
            n = std::size_t(1) << rules.size();
            for (std::size_t cell = 0; cell < f.n_cells; ++cell)
                for (std::size_t t = 0; t < rules.size(); ++t)
                    of_cell[cell] |= static_cast<std::uint16_t>((cell >> rules[t].place & 1) << t);
            return;
        }
        if (f.kind == Kind::levels) {
            for (std::size_t t = 0; t < rules.size(); ++t) {
                right[t] = t + 1;
                of_cell[rules[t].place] = static_cast<std::uint16_t>(t + 1);
            }
            n = rules.size() + 1;
            return;
        }
        std::size_t segment = 0, cell = 1;
        for (std::size_t t = 0; t < rules.size(); ++t) {
            if (t == 0 || rules[t].place != rules[t - 1].place) {
                for (; cell < rules[t].place + 2; ++cell)
                    of_cell[cell] = static_cast<std::uint16_t>(segment);
                ++segment;
            }
            right[t] = segment;
        }
        for (; cell < f.n_cells; ++cell) of_cell[cell] = static_cast<std::uint16_t>(segment);
        // Where missing values are alone on the right of a rule, its segment of values is empty.
        of_cell[0] = static_cast<std::uint16_t>(segment + 1);
        n = segment + 2;
    }

    // X on the right side of each rule, from X by segment.
    void right_sums(const double* X, std::size_t stride, double* out) const {
        if (!feature) return;
        if (feature->kind == Kind::bits) {
            std::fill_n(out, rules.size() * stride, 0.0);
            for (std::size_t g = 1; g < n; ++g)
                for (std::size_t t = 0; t < rules.size(); ++t)
                    if (g >> t & 1)
                        for (std::size_t c = 0; c < stride; ++c)
                            out[t * stride + c] += X[g * stride + c];
            return;
        }
        const bool nested = feature->kind == Kind::ordered;
        std::vector<double> sum(stride, 0.0);
        std::size_t segment = n - 1;  // those from here on are in the sum
        for (std::size_t t = rules.size(); t-- > 0;) {
            double* to = out + t * stride;
            if (!nested) {
                std::copy_n(X + right[t] * stride, stride, to);
                continue;
            }
            for (; segment > right[t];) {
                --segment;
                for (std::size_t c = 0; c < stride; ++c) sum[c] += X[segment * stride + c];
            }
            const double* missing = X + (n - 1) * stride;
            for (std::size_t c = 0; c < stride; ++c)
                to[c] = rules[t].missing_right ? sum[c] + missing[c] : sum[c];
        }
    }

    // d = sum_t h_t steps_t, by segment.
    void values(const double* steps, std::size_t stride, double* d) const {
        std::fill_n(d, n * stride, 0.0);
        for (std::size_t t = 0; t < rules.size(); ++t) {
            const double* step = steps + t * stride;
            for (std::size_t c = 0; c < stride; ++c) d[c] -= step[c];
        }
        for (std::size_t g = 1; g < n; ++g) std::copy_n(d, stride, d + g * stride);
        if (feature && feature->kind == Kind::bits) {
            for (std::size_t g = 1; g < n; ++g)
                for (std::size_t t = 0; t < rules.size(); ++t)
                    if (g >> t & 1)
                        for (std::size_t c = 0; c < stride; ++c)
                            d[g * stride + c] += 2.0 * steps[t * stride + c];
            return;
        }
        const bool nested = feature && feature->kind == Kind::ordered;
        for (std::size_t t = 0; t < rules.size(); ++t) {
            const double* step = steps + t * stride;
            double* own = d + right[t] * stride;
            // Of ordered ones first the jumps, which are then added up.
            for (std::size_t c = 0; c < stride; ++c) own[c] += 2.0 * step[c];
            if (nested && rules[t].missing_right)
                for (std::size_t c = 0; c < stride; ++c) d[(n - 1) * stride + c] += 2.0 * step[c];
        }
        if (!nested) return;
        for (std::size_t c = 0; c < stride; ++c) {
            const double low = d[c];
            for (std::size_t g = 1; g + 1 < n; ++g)
                d[g * stride + c] += d[(g - 1) * stride + c] - low;
        }
    }
};

constexpr int small_cycles = 5;
constexpr double small_enough = 0.01;     // of what the first cycle moved
constexpr double farthest = 2.0;          // change of F: the quadratic model is local
constexpr double least_curvature = 1e-12;  // of all rows, whose weight is one
constexpr double hold = 1e6;              // curvature of a segment that stays, times all others

// min <G, d> + <H, d d> / 2 + penalties over d = rise of b + sum_t h_t (change of v_t), by segment.
//
// The level is at its best for whatever the rules are. With R_t the sums of H on the right side of
// rule t and M_t = <H, h_t>, the covariance of two rules is <H, h_t h_u> - M_t M_u / W, and
// <H, h_t h_u> = 4 <H on both right sides> - 2 R_t - 2 R_u + sum H. Cuts in ascending order have
// nested right sides, and those of levels are disjoint, so that running sums of the changes of the
// rules before make a cycle linear in the rules.
//
// A segment that is `held` stays where it is; there is none if this is their number.
template <class Stride>
TCBOOST_INLINE void small_problem_of(const Segments& segments, double* G, double* H,
                                     const Penalty& o, Stride stride, std::size_t held, double* b,
                                     double* v, double* d) {
    const std::size_t T = segments.rules.size(), n = segments.n;
    const bool nested = segments.feature && segments.feature->kind == Kind::ordered;
    using Numbers = std::vector<double>;
    Numbers HT(stride, 0.0), W(stride), per_W(stride), level(stride);
    Numbers old(v, v + T * stride), steps(T * stride, 0.0);
    if (held < n) {
        Numbers others(stride, 0.0);
        for (std::size_t g = 0; g < n; ++g)
            if (g != held)
                for (std::size_t c = 0; c < stride; ++c) others[c] += H[g * stride + c];
        for (std::size_t c = 0; c < stride; ++c) {
            G[held * stride + c] = 0.0;
            H[held * stride + c] = hold * (others[c] + least_curvature);
        }
    }
    for (std::size_t g = 0; g < n; ++g)
        for (std::size_t c = 0; c < stride; ++c) HT[c] += H[g * stride + c];
    for (std::size_t c = 0; c < stride; ++c) {
        W[c] = HT[c] + o.intercept + 1e-300;
        per_W[c] = 1.0 / W[c];
    }
    Numbers R(T * stride), M(T * stride), K(T), Q(n * stride), QR(T * stride), QT(stride);
    Numbers S1(stride), S3(stride), SR(stride), rise(stride, 0.0), z(stride);
    segments.right_sums(H, stride, R.data());
    for (std::size_t t = 0; t < T; ++t) {
        K[t] = least_curvature;
        for (std::size_t c = 0; c < stride; ++c) {
            const double m = M[t * stride + c] = 2.0 * R[t * stride + c] - HT[c];
            K[t] = std::max(K[t], HT[c] - m * m / W[c]);
        }
    }
    const double* missing = H + (n - 1) * stride;
    std::fill_n(d, n * stride, 0.0);
    // Of bits, H on the right of a rule and of one before it.
    const bool bits = segments.feature && segments.feature->kind == Kind::bits;
    Numbers pairs(bits ? T * T * stride : 0, 0.0), changes(bits ? T * stride : 0);
    for (std::size_t g = 1; bits && g < n; ++g)
        for (std::size_t t = 1; t < T; ++t)
            for (std::size_t u = 0; u < t; ++u)
                if ((g >> t & 1) && (g >> u & 1))
                    for (std::size_t c = 0; c < stride; ++c)
                        pairs[(t * T + u) * stride + c] += H[g * stride + c];
    double first = 0.0;
    for (int cycle = 0; cycle < small_cycles; ++cycle) {
        std::fill(QT.begin(), QT.end(), 0.0);
        for (std::size_t g = 0; g < n; ++g)
            for (std::size_t c = 0; c < stride; ++c) {
                const std::size_t k = g * stride + c;
                QT[c] += Q[k] = G[k] + H[k] * d[k];
            }
        segments.right_sums(Q.data(), stride, QR.data());
        for (std::size_t c = 0; c < stride; ++c) {
            S1[c] = S3[c] = SR[c] = 0.0;
            level[c] = (QT[c] + o.intercept * (b[c] + rise[c])) * per_W[c];
        }
        double moved = 0.0;
        for (std::size_t t = 0; t < T; ++t) {
            const double *m = &M[t * stride], *right = &R[t * stride];
            double* vt = v + t * stride;
            const bool with_missing = nested && segments.rules[t].missing_right;
            double squares = 0.0;
            for (std::size_t c = 0; c < stride; ++c) {
                double both = 0.0;
                for (std::size_t u = 0; bits && u < t; ++u)
                    both += pairs[(t * T + u) * stride + c] * changes[u * stride + c];
                if (nested) {
                    const double of_missing = with_missing ? missing[c] : 0.0;
                    both = (right[c] - of_missing) * S1[c] + of_missing * SR[c];
                }
                const double slope = 2.0 * S3[c] - HT[c] * S1[c];
                const double g = 2.0 * QR[t * stride + c] - QT[c] - m[c] * S1[c] - 2.0 * S3[c] +
                                 4.0 * both - m[c] * (level[c] + slope * per_W[c]);
                z[c] = K[t] * vt[c] - g;
                squares += z[c] * z[c];
            }
            const double size = std::sqrt(squares);
            const double share = size > o.penalty ? (1.0 - o.penalty / size) / (K[t] + o.ridge) : 0.0;
            double change_squares = 0.0;
            for (std::size_t c = 0; c < stride; ++c) {
                const double change = share * z[c] - vt[c];
                vt[c] += change;
                S1[c] += change, S3[c] += change * right[c];
                if (bits) changes[t * stride + c] = change;
                if (with_missing) SR[c] += change;
                change_squares += change * change;
            }
            moved += K[t] * change_squares;
        }
        for (std::size_t k = 0; k < T * stride; ++k) steps[k] = v[k] - old[k];
        segments.values(steps.data(), stride, d);
        for (std::size_t c = 0; c < stride; ++c) {
            double gradient = o.intercept * b[c];
            for (std::size_t g = 0; g < n; ++g)
                gradient += G[g * stride + c] + H[g * stride + c] * d[g * stride + c];
            rise[c] = -gradient / W[c];
        }
        for (std::size_t g = 0; g < n; ++g)
            for (std::size_t c = 0; c < stride; ++c) d[g * stride + c] += rise[c];
        if (cycle == 0) first = moved;
        if (moved <= small_enough * first) break;
    }
    if (held < n)  // to the last bit
        for (std::size_t c = 0; c < stride; ++c) {
            const double back = d[held * stride + c];
            rise[c] -= back;
            for (std::size_t g = 0; g < n; ++g) d[g * stride + c] -= back;
        }
    double largest = 0.0;
    for (std::size_t k = 0; k < n * stride; ++k) largest = std::max(largest, std::abs(d[k]));
    const double part = largest > farthest ? farthest / largest : 1.0;
    for (std::size_t k = 0; k < n * stride; ++k) d[k] *= part;
    for (std::size_t k = 0; k < T * stride; ++k) v[k] = old[k] + part * steps[k];
    for (std::size_t c = 0; c < stride; ++c) b[c] += part * rise[c];
}

TCBOOST_WIDE inline void small_problem(const Segments& segments, double* G, double* H,
                                       const Penalty& o, std::size_t stride, std::size_t held,
                                       double* b, double* v, double* d) {
    with_stride(stride, [&](auto constant) TCBOOST_INLINED {
        small_problem_of(segments, G, H, o, constant, held, b, v, d);
    });
}

}  // namespace tcboost
