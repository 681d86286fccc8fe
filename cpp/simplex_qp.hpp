// The quadratic program of a Newton step, over the budget simplex.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "dense.hpp"

namespace tcboost {

// H_FF = L L^T for a list F of variables that grows and shrinks one at a time.
class Cholesky {
   public:
    explicit Cholesky(std::size_t capacity = 0) { reserve(capacity); }

    std::size_t size() const { return order_.size(); }
    std::size_t operator[](std::size_t i) const { return order_[i]; }
    const std::vector<std::size_t>& order() const { return order_; }

    void clear() { order_.clear(), ones_.clear(); }

    void reserve(std::size_t capacity) {
        if (capacity <= capacity_) return;
        Vector grown(capacity * capacity);
        for (std::size_t i = 0; i < size(); ++i)
            std::copy(row(i), row(i) + i + 1, grown.data() + i * capacity);
        L_ = std::move(grown), capacity_ = capacity;
    }

    // Append variable k, of which `h` is the row of H; false if H is not positive definite.
    bool append(std::size_t k, const double* h) {
        const std::size_t n = size();
        double* l = row(n);
        for (std::size_t i = 0; i < n; ++i) l[i] = h[order_[i]];
        forward(l, 0, n);
        const double rest = h[k] - squared(l, n);
        if (!(rest > 0)) return false;
        l[n] = std::sqrt(rest);
        order_.push_back(k);
        ones_.push_back(1.0);
        forward(ones_.data(), n, n + 1);
        return true;
    }

    // Delete the variable at `place`; rotations make the rows below triangular again.
    void remove(std::size_t place) {
        order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place));
        const std::size_t n = size();
        turns_.resize(n);
        for (std::size_t i = place; i < n; ++i) {
            const double* from = row(i + 1);
            double* to = row(i);
            std::copy(from, from + place, to);
            double carried = from[place];
            for (std::size_t k = place; k < i; ++k) {
                const auto [c, s] = turns_[k];
                to[k] = c * carried + s * from[k + 1];
                carried = c * from[k + 1] - s * carried;
            }
            const double last = from[i + 1], length = std::sqrt(carried * carried + last * last);
            to[i] = length;
            turns_[i] = {carried / length, last / length};
        }
        ones_.resize(n);
        std::fill(ones_.begin() + static_cast<std::ptrdiff_t>(place), ones_.end(), 1.0);
        forward(ones_.data(), place, n);
    }

    const Vector& ones() const { return ones_; }  // L^-1 1

    template <class See>
    void visit(See& see) {
        see(capacity_, order_, L_, ones_);
    }

    void forward(double* x) const { forward(x, 0, size()); }

    TCBOOST_WIDE void backward(double* x) const {  // x = L^-T x
        for (std::size_t i = size(); i-- > 0;) {
            x[i] /= row(i)[i];
            add_multiple(-x[i], row(i), x, i);
        }
    }

   private:
    // x = L^-1 x, the entries from `begin` to `end`.
    TCBOOST_WIDE void forward(double* x, std::size_t begin, std::size_t end) const {
        // Two rows at a time wait less often for the number that was just written.
        for (std::size_t i = begin; i < end; i += 2) {
            const double *a = row(i), *b = row(i + 1);
            const double first = (x[i] - inner(a, x, i)) / a[i];
            if (i + 1 < end) x[i + 1] = (x[i + 1] - inner(b, x, i) - b[i] * first) / b[i + 1];
            x[i] = first;
        }
    }

    TCBOOST_WIDE static double squared(const double* l, std::size_t n) { return inner(l, l, n); }

    double* row(std::size_t i) { return L_.data() + i * capacity_; }
    const double* row(std::size_t i) const { return L_.data() + i * capacity_; }

    std::size_t capacity_ = 0;
    std::vector<std::size_t> order_;
    std::vector<std::pair<double, double>> turns_;
    Vector L_, ones_;
};

// y -= H x, over the listed rows of the symmetric H.
TCBOOST_WIDE inline void subtract_product(const double* H, std::size_t stride,
                                          const std::vector<std::size_t>& rows, const Vector& x,
                                          Vector& y) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        add_multiple(-x[i], H + rows[i] * stride, y.data(), y.size());
}

// Minimise d.H.d / 2 - g.d over w + d >= 0, sum(w + d) <= theta; false if H is not positive
// definite, as far as it was looked at. The rows of H are `stride` apart.
//
// A primal active-set method from the feasible point w; `free` is the factor of the variables
// that were free last time, or empty. The budget's slack theta - sum v is one more variable
// without a cost: while it is free, the multiplier of the budget is zero. All systems are solved
// for increments, so that what is lost to an ill-conditioned H is relative to the step and not
// to w.
inline bool solve_simplex_qp(const double* H, std::size_t stride, const Vector& g, double theta,
                             const Vector& w, Cholesky& free, Vector& d) {
    const std::size_t q = g.size();
    Vector v = w, residual = g, x;  // residual = g - H d
    d.assign(q, 0.0);
    std::vector<char> is_free(q, 0);
    free.reserve(q);
    for (std::size_t i = free.size(); i-- > 0;) {
        if (w[free[i]] > 0)
            is_free[free[i]] = 1;
        else
            free.remove(i);
    }
    auto enter = [&](std::size_t k) {
        is_free[k] = 1;
        return free.append(k, H + k * stride);
    };
    for (std::size_t k = 0; k < q; ++k)
        if (w[k] > 0 && !is_free[k] && !enter(k)) return false;
    const double total = sum(v);
    bool slack_free = total < theta * (1 - 1e-14);
    double slack = slack_free ? theta - total : 0.0, steepest = 1e-300;
    for (double slope : g) steepest = std::max(steepest, std::fabs(slope));
    const double tolerance = 1e-13 * steepest;
    for (std::size_t iteration = 0; iteration < 20 * q + 20; ++iteration) {
        const std::size_t n = free.size();
        // The step to the minimiser over the free variables, with the budget's multiplier.
        double multiplier = 0.0;
        x.resize(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = residual[free[i]];
        if (slack_free || n == 0) {
            free.forward(x.data());
            free.backward(x.data());
        } else {
            // The mean is taken out first: at an optimum all residuals of the support are equal.
            const double mean = sum(x) / static_cast<double>(n);
            for (double& value : x) value -= mean;
            free.forward(x.data());
            // The multiple of H^-1 1 that makes the step sum to zero, found between the two
            // triangular systems: sum(x) is 1.L^-T y.
            const Vector& ones = free.ones();
            double along = 0.0, all = 0.0;
            for (std::size_t i = 0; i < n; ++i) along += ones[i] * x[i], all += ones[i] * ones[i];
            const double shift = along / all;
            for (std::size_t i = 0; i < n; ++i) x[i] -= shift * ones[i];
            free.backward(x.data());
            // What cancelled must not be left in the sum, nor spread over stiff variables.
            const double left = sum(x);
            double size = 0.0;
            for (double value : x) size += std::fabs(value);
            if (std::fabs(left) > 1e-15 * size) {
                Vector spread = ones;
                free.backward(spread.data());
                for (std::size_t i = 0; i < n; ++i) x[i] -= left / all * spread[i];
            }
            multiplier = mean + shift;
        }
        double step = 1.0;
        std::size_t blocking = n;  // none; n + 1 is the slack
        for (std::size_t i = 0; i < n; ++i)
            if (v[free[i]] + x[i] < 0 && v[free[i]] < step * -x[i])
                step = v[free[i]] / -x[i], blocking = i;
        const double change = slack_free ? sum(x) : 0.0;
        if (slack_free && slack < step * change) step = slack / change, blocking = n + 1;
        for (std::size_t i = 0; i < n; ++i) {
            x[i] *= step;
            d[free[i]] += x[i], v[free[i]] += x[i];
        }
        subtract_product(H, stride, free.order(), x, residual);
        slack -= step * change;
        if (blocking == n + 1) {
            slack = 0.0, slack_free = false;
        } else if (blocking < n) {
            const std::size_t k = free[blocking];
            d[k] = -w[k], v[k] = 0.0, is_free[k] = 0;
            free.remove(blocking);
        } else {
            std::size_t worst = q;
            double violation = -std::numeric_limits<double>::infinity();
            for (std::size_t k = 0; k < q; ++k)
                if (!is_free[k] && residual[k] - multiplier > violation)
                    violation = residual[k] - multiplier, worst = k;
            if (!slack_free && -multiplier > std::max(violation, tolerance))
                slack_free = true;
            else if (violation <= tolerance)
                break;
            else if (!enter(worst))
                return false;
        }
    }
    return true;
}

}  // namespace tcboost
