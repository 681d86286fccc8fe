// Smooth losses of the margins, and their minima along a line.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "dense.hpp"

namespace tcboost {

// A loss at margins z: turns them into u, minus the gradient, writes h and returns the value. The
// second derivative is diag(h), or diag(h) - u u^T if the loss is centred. An empty h is u.
using Expand = std::function<double(Vector& z, Vector& h)>;

// A loss of the margins, once the weights s of the rows are known, of `width` margins each.
struct SmoothLoss {
    std::function<Expand(const Vector& s, std::size_t width)> on_margins;
    bool centred;
};

constexpr std::size_t kFewMargins = 1 << 16;

// log sum s exp(-z): problems (4) and (19) of the paper. Its weights u sum to one.
inline SmoothLoss exponential_loss() {
    return {[](const Vector& s, std::size_t width) -> Expand {
                // Where they are few, one for each margin: without a loop over those of a row the
                // exponentials take a fifth less.
                const std::size_t times = s.size() * width <= kFewMargins ? width : 1;
                Vector log_s;
                log_s.reserve(s.size() * times);
                for (double value : s) log_s.insert(log_s.end(), times, std::log(value));
                return [log_s = std::move(log_s), each = width / times](Vector& z, Vector&) {
                    return log_sum_exp(log_s.data(), each, z.data(), z.size());
                };
            },
            true};
}

// Where a line search ends, and what was found there.
struct Along {
    double t, loss;
    bool seen;  // u and h are those at t
};

// The t in (0, t_max] of least loss at z + t zd; 1 if `enough` slope is gone there, and the loss
// is at the `most` what it was: a loss with kinks can rise while the slope falls, and steps that
// may raise it can go round in circles. If it is `loose` any such t will do.
//
// By Newton's method on the slope, kept inside a bracket; writes the dual weights u and h.
inline Along minimise_along(const Expand& expand, bool centred, const Vector& z, const Vector& zd,
                            double t_max, Vector& u, Vector& h, double enough = 0.0,
                            double most = 0.0, bool loose = false) {
    const std::size_t n = z.size();
    double low = 0.0, high = t_max, t = std::min(1.0, t_max), loss = 0.0;
    for (int i = 0; i < 100; ++i) {
        for (std::size_t k = 0; k < n; ++k) u[k] = z[k] + t * zd[k];
        loss = expand(u, h);
        const double descent = inner(u, zd);
        const bool done = ((loose || t == 1.0) && std::fabs(descent) <= enough && loss <= most) ||
                          (t == t_max && descent >= 0);
        if (done || descent == 0.0) return {t, loss, true};
        (descent >= 0 ? low : high) = t;
        const double centre = centred ? descent : 0.0;
        const double curvature =
            inner_squares(h.empty() ? u.data() : h.data(), zd.data(), centre, n);
        const double newton =
            curvature > 0 ? t + descent / curvature
                          : std::copysign(std::numeric_limits<double>::infinity(), descent);
        if (std::fabs(newton - t) <= 1e-10 * t || high - low <= 1e-13 * high)
            return {t, loss, true};
        if (newton >= high && high == t_max)
            t = t_max;
        else
            t = low < newton && newton < high ? newton : (low + high) / 2;
    }
    return {t, loss, false};
}

}  // namespace tcboost
