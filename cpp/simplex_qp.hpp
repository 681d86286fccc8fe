// The quadratic program of a Newton step, over the budget simplex.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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

    // Append variables of H, whose rows are `stride` apart; false if it is not positive definite.
    //
    // Eight at a time, which have most of the work in common and do not wait for each other: two
    // thirds of the time. In pairs from an even place on, so that no sum changes.
    bool append(const std::vector<std::size_t>& added, const double* H, std::size_t stride) {
        constexpr std::size_t most = 8;
        for (std::size_t done = 0, count; done < added.size(); done += count) {
            const std::size_t n = size();
            const std::size_t* ks = added.data() + done;
            count = n % 2 == 0 ? std::min(most, added.size() - done) : 1;
            double* rows[most];
            for (std::size_t r = 0; r < count; ++r) {
                rows[r] = row(n + r);
                const double* h = H + ks[r] * stride;
                for (std::size_t i = 0; i < n; ++i) rows[r][i] = h[order_[i]];
                for (std::size_t i = 0; i < r; ++i) rows[r][n + i] = h[ks[i]];
            }
            forward(rows, count, 0, n);
            for (std::size_t r = 0; r < count; ++r) {
                forward(rows + r, 1, n, n + r);
                const double rest = H[ks[r] * (stride + 1)] - squared(rows[r], n + r);
                if (!(rest > 0)) return false;
                rows[r][n + r] = std::sqrt(rest);
                order_.push_back(ks[r]);
                ones_.push_back(1.0);
                forward(ones_.data(), n + r, n + r + 1);
            }
        }
        return true;
    }

    // Delete the variable at `place`; rotations make the rows below triangular again. Four rows at
    // a time, as each number waits for the one before it: of 150 rows two thirds of the time.
    void remove(std::size_t place) {
        order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place));
        const std::size_t n = size();
        turns_.resize(n);
        for (std::size_t start = place; start < n; start += 4) {
            const std::size_t count = std::min<std::size_t>(4, n - start);
            double carried[4];
            for (std::size_t r = 0; r < count; ++r) {
                const double* from = row(start + r + 1);
                std::copy(from, from + place, row(start + r));
                carried[r] = from[place];
            }
            auto turn = [&](std::size_t r, std::size_t k) {
                const auto [c, s] = turns_[k];
                const double next = row(start + r + 1)[k + 1];
                row(start + r)[k] = c * carried[r] + s * next;
                carried[r] = c * next - s * carried[r];
            };
            if (count == 4)
                for (std::size_t k = place; k < start; ++k)
                    turn(0, k), turn(1, k), turn(2, k), turn(3, k);
            for (std::size_t r = 0; r < count; ++r) {
                const std::size_t i = start + r;
                for (std::size_t k = count == 4 ? start : place; k < i; ++k) turn(r, k);
                const double last = row(i + 1)[i + 1];
                const double length = std::sqrt(carried[r] * carried[r] + last * last);
                row(i)[i] = length;
                turns_[i] = {carried[r] / length, last / length};
            }
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
    void forward(double* x, std::size_t begin, std::size_t end) const {
        forward(&x, 1, begin, end);
    }

    // x = L^-1 x for each of some x, the entries from `begin` to `end`.
    TCBOOST_WIDE void forward(double* const* xs, std::size_t count, std::size_t begin,
                              std::size_t end) const {
        // Two rows at a time wait less often for the number that was just written.
        for (std::size_t i = begin; i < end; i += 2) {
            const double *a = row(i), *b = row(i + 1);
            for (std::size_t r = 0; r < count; ++r) {
                double* x = xs[r];
                const double first = (x[i] - inner(a, x, i)) / a[i];
                if (i + 1 < end) x[i + 1] = (x[i + 1] - inner(b, x, i) - b[i] * first) / b[i + 1];
                x[i] = first;
            }
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

// Minimise d.H.d / 2 - g.d over w + d >= 0, sum(w + d) <= theta; false if H is not positive
// definite, as far as it was looked at. The rows of H are `stride` apart.
//
// A primal active-set method from the feasible point w; `free` is the factor of the variables
// that were free last time, or empty. The budget's slack theta - sum v is one more variable
// without a cost: while it is free, the multiplier of the budget is zero. All systems are solved
// for increments, so that what is lost to an ill-conditioned H is relative to the step and not
// to w. With the most violating variable enter those that violate by that `share` of it.
inline bool solve_simplex_qp(const double* H, std::size_t stride, const Vector& g, double theta,
                             const Vector& w, Cholesky& free, Vector& d,
                             double share = 1.0) {
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
    std::vector<std::size_t> entering;
    for (std::size_t k = 0; k < q; ++k)
        if (w[k] > 0 && !is_free[k]) entering.push_back(k), is_free[k] = 1;
    if (!free.append(entering, H, stride)) return false;
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
            if (!slack_free && -multiplier > std::max(violation, tolerance)) {
                slack_free = true;
                continue;
            }
            if (violation <= tolerance) break;
            entering.clear();
            for (std::size_t k = 0; k < q; ++k)
                if (k == worst || (!is_free[k] && residual[k] - multiplier > share * violation))
                    entering.push_back(k), is_free[k] = 1;
            if (!free.append(entering, H, stride)) return false;
        }
    }
    return true;
}

}  // namespace tcboost
