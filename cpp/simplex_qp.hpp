// The quadratic program of a Newton step, over the budget simplex.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "cholesky.hpp"
#include "dense.hpp"

namespace tcboost {

// y -= H x, over the listed rows of the symmetric H; four at a time, so that y is loaded less often.
TCBOOST_WIDE inline void subtract_product(const double* H, std::size_t stride,
                                          const std::vector<std::size_t>& rows, const Vector& x,
                                          Vector& y) {
    double* TCBOOST_RESTRICT out = y.data();
    const std::size_t n = rows.size(), size = y.size();
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *a = H + rows[i] * stride, *b = H + rows[i + 1] * stride,
                     *c = H + rows[i + 2] * stride, *d = H + rows[i + 3] * stride;
        const double xa = x[i], xb = x[i + 1], xc = x[i + 2], xd = x[i + 3];
        for (std::size_t k = 0; k < size; ++k)
            out[k] = (((out[k] - xa * a[k]) - xb * b[k]) - xc * c[k]) - xd * d[k];
    }
    for (; i < n; ++i) add_multiple(-x[i], H + rows[i] * stride, out, size);
}

// Minimise d.H.d / 2 - g.d over w + d >= 0, sum(w + d) <= theta, from a feasible w.
//
// An active-set method: on the free variables a linear system, whose factor is kept in `free` from
// one program to the next, and the others at zero. The budget's slack theta - sum v is one more
// variable without a cost: while it is free, the multiplier of the budget is zero. All systems are
// solved for increments, so that what is lost to an ill-conditioned H is relative to the step and
// not to w.
class SimplexQp {
   public:
    // The rows of H are `stride` apart.
    SimplexQp(const double* H, std::size_t stride, const Vector& g, double theta, const Vector& w,
              Cholesky& free)
        : H_(H), stride_(stride), g_(g), theta_(theta),
          tolerance_(1e-13 * std::max(largest_size(g.data(), g.size()), 1e-300)), w_(w),
          free_(free) {}

    // The solution d; false if H is not positive definite, as far as it was looked at.
    //
    // One variable comes or goes at a time: the value falls in every iteration.
    bool solve(Vector& d) {
        const std::size_t most = 20 * g_.size() + 20;
        if (!start()) return false;
        for (std::size_t iteration = 0; iteration < most; ++iteration) {
            const double multiplier = find_step();
            if (leave()) continue;
            if (!enter(multiplier)) break;
            if (!free_.append(entering_, H_, stride_)) return false;
        }
        d = std::move(d_);
        return true;
    }

   private:
    // From w, whose support is free.
    bool start() {
        const std::size_t q = g_.size();
        v_ = w_, residual_ = g_, d_.assign(q, 0.0), is_free_.assign(q, 0);
        free_.reserve(q);
        for (std::size_t i = free_.size(); i-- > 0;) {
            if (w_[free_[i]] > 0)
                is_free_[free_[i]] = 1;
            else
                free_.remove(i);
        }
        entering_.clear();
        for (std::size_t k = 0; k < q; ++k)
            if (w_[k] > 0 && !is_free_[k]) entering_.push_back(k), is_free_[k] = 1;
        const double total = sum(v_);
        slack_free_ = total < theta_ * (1 - 1e-14);
        slack_ = slack_free_ ? theta_ - total : 0.0;
        return free_.append(entering_, H_, stride_);
    }

    // The step x to the minimiser over the free variables; returns the budget's multiplier.
    double find_step() {
        const std::size_t n = free_.size();
        x_.resize(n);
        for (std::size_t i = 0; i < n; ++i) x_[i] = residual_[free_[i]];
        if (slack_free_ || n == 0) {
            free_.forward(x_.data());
            free_.backward(x_.data());
            return 0.0;
        }
        // The mean is taken out first: at an optimum all residuals of the support are equal.
        const double mean = sum(x_) / static_cast<double>(n);
        for (double& value : x_) value -= mean;
        free_.forward(x_.data());
        // The multiple of H^-1 1 that makes the step sum to zero, found between the two
        // triangular systems: sum(x) is 1.L^-T y.
        const Vector& ones = free_.ones();
        double along = 0.0, all = 0.0;
        for (std::size_t i = 0; i < n; ++i) along += ones[i] * x_[i], all += ones[i] * ones[i];
        const double shift = along / all;
        for (std::size_t i = 0; i < n; ++i) x_[i] -= shift * ones[i];
        free_.backward(x_.data());
        // What cancelled must not be left in the sum, nor spread over stiff variables.
        const double left = sum(x_);
        double size = 0.0;
        for (double value : x_) size += std::fabs(value);
        if (std::fabs(left) > 1e-15 * size) {
            Vector spread = ones;
            free_.backward(spread.data());
            for (std::size_t i = 0; i < n; ++i) x_[i] -= left / all * spread[i];
        }
        return mean + shift;
    }

    // Go by the step x as far as all stay feasible; what blocked the way leaves. False if nothing did.
    bool leave() {
        const std::size_t n = free_.size(), none = n, of_slack = n + 1;
        double part = 1.0;
        std::size_t blocking = none;
        for (std::size_t i = 0; i < n; ++i)
            if (v_[free_[i]] + x_[i] < 0 && v_[free_[i]] < part * -x_[i])
                part = v_[free_[i]] / -x_[i], blocking = i;
        const double change = slack_free_ ? sum(x_) : 0.0;
        if (slack_free_ && slack_ < part * change) part = slack_ / change, blocking = of_slack;
        for (std::size_t i = 0; i < n; ++i) {
            x_[i] *= part;
            d_[free_[i]] += x_[i], v_[free_[i]] += x_[i];
        }
        subtract_product(H_, stride_, free_.order(), x_, residual_);
        slack_ -= part * change;
        if (blocking == of_slack) {
            slack_ = 0.0, slack_free_ = false;
        } else if (blocking < n) {
            const std::size_t k = free_[blocking];
            d_[k] = -w_[k], v_[k] = 0.0, is_free_[k] = 0;
            free_.remove(blocking);
        }
        return blocking != none;
    }

    // List the variable that would lower the value most, or free the slack. False at the optimum.
    bool enter(double multiplier) {
        const std::size_t q = g_.size();
        std::size_t worst = q;
        double violation = -std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < q; ++k)
            if (!is_free_[k] && residual_[k] - multiplier > violation)
                violation = residual_[k] - multiplier, worst = k;
        entering_.clear();
        if (!slack_free_ && -multiplier > std::max(violation, tolerance_)) {
            slack_free_ = true;
            return true;
        }
        if (violation <= tolerance_) return false;
        entering_.push_back(worst), is_free_[worst] = 1;
        return true;
    }

    const double* H_;
    std::size_t stride_;
    const Vector& g_;
    double theta_, tolerance_;
    const Vector& w_;
    Cholesky& free_;
    Vector v_, residual_, d_, x_;  // v = w + d, residual = g - H d
    std::vector<char> is_free_;
    std::vector<std::size_t> entering_;
    bool slack_free_ = false;
    double slack_ = 0.0;
};

}  // namespace tcboost
