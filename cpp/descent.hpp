// Block coordinate descent on the coefficients of hypotheses, within a budget.
//
//     minimise    loss(F) + ridge / 2 sum_j |v_j|^2 + price sum_j size(v_j),  F = sum_j h_j v_j
//     subject to  sum_j size(v_j) <= theta
//
// v_j is a class vector with its length as size, or a multiple w_j >= 0 of a code (without a
// ridge). The first class vector may be free: of no size, with a ridge of its own. Since h = +-1,
// a step on one hypothesis multiplies the exponentials of the scores by two factors, and all
// hypotheses have the same block on the diagonal of the Hessian.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "dense.hpp"

namespace tcboost {

struct ScoredRows {
    std::size_t n, n_classes;
    const std::int64_t* start;  // rows are sorted by class: class c has start[c] .. start[c + 1]
    const double* weight;
    bool exponential;  // log mean exp(-margin), or else the cross-entropy
};

// A product of vectors in eight sums side by side: fast, and the same on every machine. The parts
// that it is given in may end anywhere but within eight.
struct Dot {
    double s[8] = {};
    double value() const {
        return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }
};

// sums[c] += x . E_c for K vectors that are `stride` apart
template <std::size_t K>
TCBOOST_WIDE void add_dots(const double* x, const double* E, std::size_t stride, std::size_t n,
                           Dot* sums) {
    Pack<double> s[K][2], low, high, e;
    std::memcpy(s, sums, sizeof s);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        load(x + i, low), load(x + i + 4, high);
        for (std::size_t c = 0; c < K; ++c) {
            load(E + c * stride + i, e), s[c][0] += low * e;
            load(E + c * stride + i + 4, e), s[c][1] += high * e;
        }
    }
    std::memcpy(sums, s, sizeof s);
    for (; i < n; ++i)
        for (std::size_t c = 0; c < K; ++c) sums[c].s[0] += x[i] * E[c * stride + i];
}

inline double dot(const double* a, const double* b, std::size_t n) {
    Dot sum;
    if (n >= 8)
        add_dots<1>(a, b, 0, n, &sum);
    else  // the same, without a call
        for (std::size_t i = 0; i < n; ++i) sum.s[0] += a[i] * b[i];
    return sum.value();
}

// y += a x
TCBOOST_WIDE inline void add(double a, const double* x, double* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// out = a / b
TCBOOST_WIDE inline void divide(const double* a, const double* b, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] / b[i];
}

TCBOOST_WIDE inline void widen(const std::int8_t* h, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = h[i];
}

// out = x y
template <class Number>
TCBOOST_WIDE void multiply(const Number* x, const double* y, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * y[i];
}

// y += sum over k < 4 of a[k * stride] x[k]
TCBOOST_WIDE inline void add4(const double* a, std::size_t stride, const double* const* x,
                              double* y, std::size_t n) {
    const double a0 = a[0], a1 = a[stride], a2 = a[2 * stride], a3 = a[3 * stride];
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    for (std::size_t i = 0; i < n; ++i)
        y[i] += (a0 * x0[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

// E_c *= up_c + tilt_c h for K classes, each added to sum
template <std::size_t K>
TCBOOST_WIDE void grow(const double* up, const double* tilt, const std::int8_t* h, double* E,
                       std::size_t stride, double* sum, std::size_t n) {
    TCBOOST_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
        const double x = h[i];
        double total = sum[i];
        for (std::size_t c = 0; c < K; ++c) {
            const double e = E[c * stride + i] * (up[c] + tilt[c] * x);
            E[c * stride + i] = e;
            total += e;
        }
        sum[i] = total;
    }
}

// Call work(c, K) for the classes c to c + K, four at a time: what they share is loaded once.
template <class Work>
void by_fours(std::size_t n_classes, Work work) {
    std::size_t c = 0;
    for (; c + 4 <= n_classes; c += 4) work(c, std::integral_constant<std::size_t, 4>());
    switch (n_classes - c) {
        case 3: return work(c, std::integral_constant<std::size_t, 3>());
        case 2: return work(c, std::integral_constant<std::size_t, 2>());
        case 1: return work(c, std::integral_constant<std::size_t, 1>());
    }
}

// Exponentials of the scores, and what the gradient and the curvature need of them.
class Weights {
  public:
    double loss = 0, slope = 0;  // slope: <F, minus the gradient by F>

    // H: t hypotheses by columns
    Weights(const ScoredRows& rows, const std::int8_t* H, std::size_t t)
        : r_(rows), H_(H), E_(rows.n * rows.n_classes), sum_(rows.n), scale_(rows.n),
          own_(rows.weight, rows.weight + rows.n), hs_(rows.n), up_(rows.n_classes),
          tilt_(rows.n_classes), minus_(rows.n_classes) {
        if (!rows.exponential)
            for (std::size_t j = 0; j < t; ++j)
                for (std::size_t c = 0; c < rows.n_classes; ++c) plus_.push_back(plus(j, c));
    }

    // From the scores F, without what rounding has piled up.
    void refresh(const double* F) {
        const std::size_t n = r_.n, C = r_.n_classes;
        std::vector<double> top(n, -INFINITY), own(n);
        for (std::size_t c = 0; c < C; ++c)
            for (std::size_t i = 0; i < n; ++i) {
                if (owns(c, i)) own[i] = F[c * n + i];
                if (!out(c, i)) top[i] = std::max(top[i], F[c * n + i]);
            }
        std::fill(sum_.begin(), sum_.end(), 0.0);
        for (std::size_t c = 0; c < C; ++c)
            for (std::size_t i = 0; i < n; ++i)
                sum_[i] += E_[c * n + i] = out(c, i) ? 0.0 : std::exp(F[c * n + i] - top[i]);
        double most = 0;
        if (r_.exponential) {
            most = -INFINITY;
            for (std::size_t i = 0; i < n; ++i) most = std::max(most, top[i] - own[i]);
            for (std::size_t i = 0; i < n; ++i)
                scale_[i] = r_.weight[i] / double(C - 1) * std::exp(top[i] - own[i] - most);
        }
        if (r_.exponential) total_ = 0;
        normalise(0, n);
        moved_ = nullptr;
        loss = most + std::log(total_);
        if (!r_.exponential) {
            for (std::size_t i = 0; i < n; ++i) top[i] += std::log(sum_[i]) - own[i];
            loss = dot(r_.weight, top.data(), n);
        }
        slope = 0;
        for (std::size_t c = 0; c < C; ++c) {
            const std::size_t first = r_.start[c], count = r_.start[c + 1] - first;
            multiply(scale_.data(), &E_[c * n], hs_.data(), n);
            slope += dot(&own_[first], F + c * n + first, count) - dot(hs_.data(), F + c * n, n);
        }
        slope /= total_;
    }

    // Minus the gradient by the class vector of h_j, after the last move: both in one pass over
    // blocks of rows that stay in the cache, which takes half as long as two passes over all.
    void gradient(std::size_t j, double* g) {
        const std::size_t n = r_.n, C = r_.n_classes;
        std::fill(minus_.begin(), minus_.end(), Dot());
        if (moved_ && r_.exponential) total_ = 0;
        for (std::size_t i = 0; i < n; i += block) {
            const std::size_t m = std::min(block, n - i);
            if (moved_) move(i, m);
            multiply(H_ + j * n + i, &scale_[i], hs_.data(), m);
            by_fours(C, [&](std::size_t c, auto K) {
                add_dots<K>(hs_.data(), &E_[c * n + i], n, m, &minus_[c]);
            });
        }
        moved_ = nullptr;
        for (std::size_t c = 0; c < C; ++c) {
            const double own = r_.exponential ? plus(j, c) : plus_[j * C + c];
            g[c] = (own - minus_[c].value()) / total_;
        }
    }

    // The scores move by h_j step, when the next gradient is asked for.
    void move(std::size_t j, const double* step) {
        moved_ = H_ + j * r_.n;
        for (std::size_t c = 0; c < r_.n_classes; ++c) {
            up_[c] = std::cosh(step[c]);
            tilt_[c] = std::sinh(step[c]);
        }
    }

    // The block of the Hessian that belongs to one class vector (of the exponential loss
    // without its part of rank one, which would lower it).
    void curvature(double* Q) {
        const std::size_t n = r_.n, C = r_.n_classes;
        std::fill(Q, Q + C * C, 0.0);
        auto couple = [&](std::size_t a, std::size_t b, double u) {
            Q[a * C + a] += u;
            Q[b * C + b] += u;
            Q[a * C + b] -= u;
            Q[b * C + a] -= u;
        };
        for (std::size_t c = 0; c < C; ++c) {
            multiply(scale_.data(), &E_[c * n], hs_.data(), n);
            if (r_.exponential) {
                for (std::size_t y = 0; y < C; ++y) {
                    double u = 0;
                    for (std::size_t i = r_.start[y]; i < std::size_t(r_.start[y + 1]); ++i)
                        u += hs_[i];
                    if (y != c) couple(c, y, u / total_);
                }
            } else {
                divide(hs_.data(), sum_.data(), hs_.data(), n);
                for (std::size_t k = 0; k < c; ++k) couple(c, k, dot(hs_.data(), &E_[k * n], n));
            }
        }
    }

  private:
    ScoredRows r_;
    const std::int8_t* H_;
    // Class c of row i has the dual weight scale[i] E[c, i] / total; own[i] is the sum of a row.
    std::vector<double> E_, sum_, scale_, own_, hs_;
    double total_ = 1;
    const std::int8_t* moved_ = nullptr;  // the hypothesis of a move that is still to be made
    std::vector<double> up_, tilt_;
    std::vector<Dot> minus_;
    std::vector<double> plus_;                 // of all j and c, where own never changes
    static constexpr std::size_t block = 512;  // rows, a multiple of eight

    bool owns(std::size_t c, std::size_t i) const {
        return std::int64_t(i) >= r_.start[c] && std::int64_t(i) < r_.start[c + 1];
    }
    bool out(std::size_t c, std::size_t i) const { return r_.exponential && owns(c, i); }

    // The own weights of class c times h_j.
    double plus(std::size_t j, std::size_t c) {
        const std::size_t first = r_.start[c], count = r_.start[c + 1] - first;
        widen(H_ + j * r_.n + first, hs_.data(), count);
        return dot(hs_.data(), own_.data() + first, count);
    }

    // The rows from `first` on make the last move.
    void move(std::size_t first, std::size_t m) {
        std::fill_n(&sum_[first], m, 0.0);
        by_fours(r_.n_classes, [&](std::size_t c, auto K) {
            grow<K>(&up_[c], &tilt_[c], moved_ + first, &E_[c * r_.n + first], r_.n, &sum_[first], m);
        });
        for (std::size_t c = 0; r_.exponential && c < r_.n_classes; ++c) {
            const std::size_t last = std::min<std::size_t>(first + m, r_.start[c + 1]);
            for (std::size_t i = std::max<std::size_t>(first, r_.start[c]); i < last; ++i)
                scale_[i] /= up_[c] + tilt_[c] * moved_[i];
        }
        normalise(first, m);
    }

    void normalise(std::size_t first, std::size_t m) {
        if (r_.exponential) {
            multiply(&scale_[first], &sum_[first], &own_[first], m);
            for (std::size_t i = first; i < first + m; ++i) total_ += own_[i];
        } else {
            divide(&own_[first], &sum_[first], &scale_[first], m);
        }
    }
};

// Class vectors, W of shape (t, C).
class VectorSteps {
  public:
    // free_ridge: that of the first class vector, if it is free, or else zero
    VectorSteps(double* W, std::size_t C, double ridge, double free_ridge)
        : W_(W), C_(C), ridge_(ridge), free_ridge_(free_ridge), x_(C) {}

    std::size_t n_free() const { return free_ridge_ > 0; }
    double size(std::size_t j) const { return length(W_ + j * C_); }
    // Of the loss with its ridge.
    double edge(std::size_t j, const double* g) {
        for (std::size_t c = 0; c < C_; ++c) x_[c] = g[c] - ridge_of(j) * W_[j * C_ + c];
        return length(x_.data());
    }
    // ridge |W|^2
    double ridge(std::size_t t) const {
        const std::size_t first = std::min(t, n_free()) * C_;
        double sum = n_free() ? free_ridge_ * dot(W_, W_, first) : 0;
        if (ridge_ > 0) sum += ridge_ * dot(W_ + first, W_ + first, t * C_ - first);
        return sum;
    }
    // Of a free class vector, by its gradient g: its part of <W, minus the gradient>, and of the
    // gap.
    void free_parts(const double* g, double& slope, double& gap) {
        const double e = edge(0, g);
        slope = dot(W_, x_.data(), C_);
        gap = e * e / (2 * free_ridge_);
    }
    double* data() { return W_; }
    std::size_t dimension() const { return C_; }

    // Minimise -g.d + d'Qd curve / 2 + ridge |v + d|^2 / 2 + lambda |v + d|: a few proximal
    // gradients.
    void solve(std::size_t j, const double* g, const double* Q, double curve, double lambda,
               double* d) {
        const double* v = W_ + j * C_;
        std::fill(d, d + C_, 0.0);
        if (size(j) == 0 && length(g) <= lambda) return;
        const double ridge = ridge_of(j);
        double steep = 0;
        for (std::size_t c = 0; c < C_; ++c) steep = std::max(steep, 2 * Q[c * C_ + c]);
        steep = std::max(curve * steep + ridge, 1e-12);  // Gershgorin: rows of Q sum to zero
        for (int k = 0; k < 12; ++k) {
            for (std::size_t c = 0; c < C_; ++c) {
                double bent = 0;
                for (std::size_t b = 0; b < C_; ++b) bent += Q[c * C_ + b] * d[b];
                x_[c] = v[c] + d[c] + (g[c] - curve * bent - ridge * (v[c] + d[c])) / steep;
            }
            const double size = std::max(length(x_.data()), 1e-300);
            const double keep = std::max(0.0, 1 - lambda / steep / size);
            double moved = 0, far = 0;
            for (std::size_t c = 0; c < C_; ++c) {
                const double next = keep * x_[c] - v[c];
                moved = std::max(moved, std::abs(next - d[c]));
                far = std::max(far, std::abs(next));
                d[c] = next;
            }
            if (moved <= 0.03 * far) break;
        }
    }
    void take(std::size_t j, const double* d) { add(1.0, d, W_ + j * C_, C_); }

  private:
    double* W_;
    std::size_t C_;
    double ridge_, free_ridge_;
    std::vector<double> x_;

    double ridge_of(std::size_t j) const { return j < n_free() ? free_ridge_ : ridge_; }
    double length(const double* v) const { return std::sqrt(dot(v, v, C_)); }
};

// Multiples w_j >= 0 of the codes, W of shape (t,).
class CodeSteps {
  public:
    CodeSteps(double* W, const std::int8_t* codes, std::size_t C) : W_(W), m_(codes), C_(C) {}

    double* data() { return W_; }
    std::size_t dimension() const { return 1; }

    double size(std::size_t j) const { return W_[j]; }
    double ridge(std::size_t) const { return 0; }
    std::size_t n_free() const { return 0; }
    void free_parts(const double*, double&, double&) {}
    double edge(std::size_t j, const double* g) const {
        double s = 0;
        for (std::size_t c = 0; c < C_; ++c) s += m_[j * C_ + c] * g[c];
        return s;
    }

    void solve(std::size_t j, const double* g, const double* Q, double curve, double lambda,
               double* d) {
        const std::int8_t* m = m_ + j * C_;
        double steep = 1e-12;
        for (std::size_t c = 0; c < C_; ++c)
            for (std::size_t b = 0; b < C_; ++b) steep += curve * m[c] * Q[c * C_ + b] * m[b];
        const double step = std::max(-W_[j], (edge(j, g) - lambda) / steep);
        for (std::size_t c = 0; c < C_; ++c) d[c] = step * m[c];
    }
    void take(std::size_t j, const double* d) {
        W_[j] = std::max(0.0, W_[j] + d[0] * m_[j * C_]);
    }

  private:
    double* W_;
    const std::int8_t* m_;
    std::size_t C_;
};

// H is n x t by columns, F is C x n by rows; W (inside steps) and F are changed together.
template <class Steps>
class Descent {
  public:
    Descent(const ScoredRows& rows, const std::int8_t* H, std::size_t t, Steps steps, double* F,
            double theta, double price)
        : rows_(rows), H_(H), t_(t), steps_(steps), F_(F), theta_(theta), price_(price),
          weights_(rows, H, t), n_free_(std::min(t, steps.n_free())), moved_(t * rows.n_classes),
          g_(rows.n_classes), d_(rows.n_classes), Q_(rows.n_classes * rows.n_classes) {}

    double run(double tol, int max_sweeps) {
        double gap = INFINITY, last_value = INFINITY, size = used();
        bool spent = size > theta_ * (1 - 1e-9);
        std::vector<double> last_F, last_W;
        int sweep = 0;
        for (;; ++sweep) {
            weights_.refresh(F_);
            const double value = weights_.loss + steps_.ridge(t_) / 2 + price_ * size;
            if (value <= last_value) {
                damping_ = std::max(1.0, 0.7 * damping_);
                last_F.assign(F_, F_ + rows_.n * rows_.n_classes);
                last_W.assign(steps_.data(), steps_.data() + t_ * steps_.dimension());
                last_value = value;
            } else {  // the way back to the budget may cost more than the sweep has gained
                damping_ = std::min(1e6, 4 * damping_);
                std::copy(last_F.begin(), last_F.end(), F_);
                std::copy(last_W.begin(), last_W.end(), steps_.data());
                size = used();
                spent = size > theta_ * (1 - 1e-9);
                weights_.refresh(F_);
            }
            double slope = weights_.slope - steps_.ridge(t_), free_slope = 0, free_gap = 0;
            if (n_free_) {
                weights_.gradient(0, g_.data());
                steps_.free_parts(g_.data(), free_slope, free_gap);
                slope -= free_slope;
            }
            auto gap_at = [&](double edge) {
                if (std::isinf(edge)) return edge;  // nothing has been seen yet
                return (std::isfinite(theta_) ? theta_ : size) * std::max(edge, price_) - slope +
                       free_gap;
            };
            // Edges met in a sweep are a little old: they tell when to look at all of them.
            if (sweep == max_sweeps || gap_at(edge_) <= tol) {
                gap = gap_at(largest_edge());
                if (gap <= tol || sweep == max_sweeps) break;
            }
            // The multiplier of the budget: the edge that the coefficients have on average.
            const double lambda = spent ? std::max(price_, slope / theta_) : price_;
            one_sweep(lambda, sweep % 2 == 0);
            bring_up_scores();
            size = used();
            spent = size > theta_ || (spent && lambda > price_ && size > 0);
            if (spent) {  // back to where the budget is used up
                rescale(theta_ / size);
                size = theta_;
            }
        }
        return gap;
    }

  private:
    ScoredRows rows_;
    const std::int8_t* H_;
    std::size_t t_;
    Steps steps_;
    double* F_;
    double theta_, price_, damping_ = 1, edge_ = INFINITY;
    Weights weights_;
    std::size_t n_free_;
    std::vector<double> moved_, g_, d_, Q_;  // moved: the steps since F was last brought up

    double used() const {
        double sum = 0;
        for (std::size_t j = n_free_; j < t_; ++j) sum += steps_.size(j);
        return sum;
    }

    void rescale(double s) {
        for (std::size_t k = 0; k < t_ * steps_.dimension(); ++k) steps_.data()[k] *= s;
        for (std::size_t i = 0; i < rows_.n * rows_.n_classes; ++i) F_[i] *= s;
    }

    double largest_edge() {
        edge_ = 0;
        for (std::size_t j = n_free_; j < t_; ++j) {
            weights_.gradient(j, g_.data());
            edge_ = std::max(edge_, steps_.edge(j, g_.data()));
        }
        return edge_;
    }

    void one_sweep(double lambda, bool newest_first) {
        weights_.curvature(Q_.data());
        edge_ = 0;
        for (std::size_t k = n_free_; k < t_; ++k) {
            one_step(newest_first ? t_ - 1 - (k - n_free_) : k, lambda);
            // What is free has to make good for all others.
            if (n_free_ && (k + 1 == t_ || k % 16 == 0)) one_step(0, 0.0);
        }
        if (t_ == n_free_ && n_free_) one_step(0, 0.0);
    }

    void one_step(std::size_t j, double lambda) {
        weights_.gradient(j, g_.data());
        if (j >= n_free_) edge_ = std::max(edge_, steps_.edge(j, g_.data()));
        // Self-concordance: along a step of this range the Hessian grows by `curve`.
        double curve = damping_, range = 0;
        for (int look = 0; look < 2; ++look) {
            steps_.solve(j, g_.data(), Q_.data(), curve, lambda, d_.data());
            const auto ends = std::minmax_element(d_.begin(), d_.end());
            range = *ends.second - *ends.first;
            if (range < 0.05) break;
            curve = damping_ * 2 * (std::expm1(range) - range) / (range * range);
        }
        if (range < 1e-14) return;
        steps_.take(j, d_.data());
        add(1.0, d_.data(), &moved_[j * rows_.n_classes], rows_.n_classes);
        weights_.move(j, d_.data());
    }

    // F += sum_j h_j moved_j: at the end of a sweep, four hypotheses at once and in blocks of rows
    // that stay in the nearest cache, that takes a sixth less than step by step (satimage).
    void bring_up_scores() {
        constexpr std::size_t block = 256;
        const std::size_t n = rows_.n, C = rows_.n_classes;
        std::vector<std::size_t> steps;
        for (std::size_t j = 0; j < t_; ++j)
            if (dot(&moved_[j * C], &moved_[j * C], C) > 0) steps.push_back(j);
        std::vector<double> h(4 * block), a(4 * C);
        const double* x[4] = {&h[0], &h[block], &h[2 * block], &h[3 * block]};
        for (std::size_t i = 0; i < n; i += block) {
            const std::size_t count = std::min(block, n - i);
            for (std::size_t k = 0; k < steps.size(); k += 4) {
                std::fill(a.begin(), a.end(), 0.0);
                for (std::size_t q = 0; q < std::min<std::size_t>(4, steps.size() - k); ++q) {
                    const std::size_t j = steps[k + q];
                    widen(H_ + j * n + i, &h[q * block], count);
                    std::copy_n(&moved_[j * C], C, &a[q * C]);
                }
                for (std::size_t c = 0; c < C; ++c) add4(&a[c], C, x, F_ + c * n + i, count);
            }
        }
        std::fill(moved_.begin(), moved_.end(), 0.0);
    }
};

template <class Steps>
double descend(const ScoredRows& rows, const std::int8_t* H, std::size_t t, Steps steps, double* F,
               double theta, double price, double tol, int max_sweeps) {
    return Descent<Steps>(rows, H, t, steps, F, theta, price).run(tol, max_sweeps);
}

}  // namespace tcboost
