// Block coordinate descent on the coefficients of hypotheses, within a budget.
//
//     minimise    loss(F) + ridge / 2 sum_j |v_j|^2 + price sum_j size(v_j) - <linear, W>
//     subject to  sum_j size(v_j) <= theta,  F = sum_j h_j v_j
//
// `linear` is none, or where the rows are a sample what all rows have in the gradient beyond it.
// v_j is a class vector with its length as size, or a multiple w_j >= 0 of a code (without a
// ridge). The first class vector may be free: of no size, with a ridge of its own. Since h = +-1,
// a step on one hypothesis multiplies the exponentials of the scores by two factors, and all
// hypotheses have the same block on the diagonal of the Hessian.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "score_weights.hpp"

namespace tcboost {

// Class vectors, W of shape (t, C).
class VectorSteps {
  public:
    // free_ridge: that of the first class vector, if it is free, or else zero
    VectorSteps(double* W, std::size_t C, double ridge, double free_ridge, const double* linear)
        : W_(W), C_(C), ridge_(ridge), free_ridge_(free_ridge), linear_(linear), x_(C) {}

    // To the gradient g of class vector j, and <linear, W>.
    void add_linear(std::size_t j, double* g) const {
        if (linear_) add(1.0, linear_ + j * C_, g, C_);
    }
    double linear(std::size_t t) const { return linear_ ? dot(W_, linear_, t * C_) : 0; }

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
        // With the number of classes known to the compiler a descent takes 4 % less (iris).
        with_constant(C_, [&](auto C) {
            for (int k = 0; k < 12; ++k) {
                for (std::size_t c = 0; c < C; ++c) {
                    double bent = 0;
                    for (std::size_t b = 0; b < C; ++b) bent += Q[c * C + b] * d[b];
                    x_[c] = v[c] + d[c] + (g[c] - curve * bent - ridge * (v[c] + d[c])) / steep;
                }
                const double size = std::max(std::sqrt(dot(x_.data(), x_.data(), C)), 1e-300);
                const double keep = std::max(0.0, 1 - lambda / steep / size);
                double moved = 0, far = 0;
                for (std::size_t c = 0; c < C; ++c) {
                    const double next = keep * x_[c] - v[c];
                    moved = std::max(moved, std::abs(next - d[c]));
                    far = std::max(far, std::abs(next));
                    d[c] = next;
                }
                if (moved <= 0.03 * far) break;
            }
        });
    }
    void take(std::size_t j, const double* d) { add(1.0, d, W_ + j * C_, C_); }

  private:
    double* W_;
    std::size_t C_;
    double ridge_, free_ridge_;
    const double* linear_;
    std::vector<double> x_;

    double ridge_of(std::size_t j) const { return j < n_free() ? free_ridge_ : ridge_; }
    double length(const double* v) const { return std::sqrt(dot(v, v, C_)); }
};

// Multiples w_j >= 0 of the codes, W of shape (t,).
class CodeSteps {
  public:
    CodeSteps(double* W, const std::int8_t* codes, std::size_t C, const double* linear)
        : W_(W), m_(codes), C_(C), linear_(linear) {}

    // One number a code: any g with that product with the code would do.
    void add_linear(std::size_t j, double* g) const {
        for (std::size_t c = 0; linear_ && c < C_; ++c)
            g[c] += linear_[j] * m_[j * C_ + c] / double(C_);
    }
    double linear(std::size_t t) const { return linear_ ? dot(W_, linear_, t) : 0; }

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
    const double* linear_;
};

// H is n x t by columns, F is C x n by rows; W (inside steps) and F are changed together.
template <class Steps, class Real>
class Descent {
  public:
    Descent(const ScoredRows& rows, const std::int8_t* H, std::size_t t, Steps steps, double* F,
            double theta, double price)
        : rows_(rows), H_(H), t_(t), steps_(steps), F_(F), theta_(theta), price_(price),
          weights_(rows, H, t), n_free_(std::min(t, steps.n_free())), moved_(t * rows.n_classes),
          g_(rows.n_classes), d_(rows.n_classes), Q_(rows.n_classes * rows.n_classes) {}

    // The gap, the size of the coefficients, ridge |W|^2, and <W, minus the gradient of the loss>.
    std::array<double, 4> run(double tol, int max_sweeps) {
        double gap, last_value = INFINITY, size = used();
        bool spent = size > theta_ * (1 - 1e-9);
        std::vector<double> last_F, last_W;
        int sweep = 0;
        for (;; ++sweep) {
            weights_.refresh(F_);
            const double value =
                weights_.loss + steps_.ridge(t_) / 2 + price_ * size - steps_.linear(t_);
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
            double slope = weights_.slope - steps_.ridge(t_) + steps_.linear(t_);
            double free_slope = 0, free_gap = 0;
            if (n_free_) {
                gradient(0);
                steps_.free_parts(g_.data(), free_slope, free_gap);
                slope -= free_slope;
            }
            auto gap_at = [&](double edge) {
                if (std::isinf(edge)) return edge;  // nothing has been seen yet
                return (std::isfinite(theta_) ? theta_ : size) * std::max(edge, price_) - slope +
                       free_gap;
            };
            // Edges met in a sweep are a little old: they tell when to look at all of them.
            gap = gap_at(edge_);
            if (gap <= tol || (sweep == max_sweeps && std::isinf(gap))) gap = gap_at(largest_edge());
            if (gap <= tol || sweep == max_sweeps) break;
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
        return {gap, size, steps_.ridge(t_), weights_.slope};
    }

  private:
    ScoredRows rows_;
    const std::int8_t* H_;
    std::size_t t_;
    Steps steps_;
    double* F_;
    double theta_, price_, damping_ = 1, edge_ = INFINITY, drift_ = 0;
    Weights<Real> weights_;
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

    void gradient(std::size_t j) {
        weights_.gradient(j, g_.data());
        steps_.add_linear(j, g_.data());
    }

    double largest_edge() {
        edge_ = 0;
        for (std::size_t j = n_free_; j < t_; ++j) {
            gradient(j);
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
        gradient(j);
        if (j >= n_free_) edge_ = std::max(edge_, steps_.edge(j, g_.data()));
        // Self-concordance: along a step of this range the Hessian grows by `curve`.
        double curve = damping_, range = 0;
        auto ends = std::make_pair(d_.begin(), d_.begin());
        for (int look = 0; look < 2; ++look) {
            steps_.solve(j, g_.data(), Q_.data(), curve, lambda, d_.data());
            ends = std::minmax_element(d_.begin(), d_.end());
            range = *ends.second - *ends.first;
            if (range < 0.05) break;
            curve = damping_ * 2 * (std::expm1(range) - range) / (range * range);
        }
        if (range < 1e-14) return;
        steps_.take(j, d_.data());
        add(1.0, d_.data(), &moved_[j * rows_.n_classes], rows_.n_classes);
        weights_.move(j, d_.data());
        const double step = std::max(std::abs(*ends.first), std::abs(*ends.second));
        drift_ += step;
        if (step > large || drift_ > far) {
            bring_up_scores();
            weights_.refresh(F_);
        }
    }

    // F += sum_j h_j moved_j: at the end of a sweep, four hypotheses at once and in blocks of rows
    // that stay in the nearest cache, that takes a sixth less than step by step (satimage).
    void bring_up_scores() {
        constexpr std::size_t block = 256;
        const std::size_t n = rows_.n, C = rows_.n_classes;
        std::vector<std::size_t> steps;
        for (std::size_t j = 0; j < t_; ++j)
            if (dot(&moved_[j * C], &moved_[j * C], C) > 0) steps.push_back(j);
        const std::size_t blocks = (n + block - 1) / block;
        const std::size_t work = n * C * steps.size();
        parallel_for(blocks, work < (1 << 20) ? 1 : rows_.n_threads, [&](std::size_t k) {
            const std::size_t i = k * block, count = std::min(block, n - i);
            double h[4 * block];
            std::vector<double> a(4 * C);
            const double* x[4] = {h, h + block, h + 2 * block, h + 3 * block};
            std::fill_n(h, 4 * block, 0.0);
            for (std::size_t s = 0; s < steps.size(); s += 4) {
                std::fill(a.begin(), a.end(), 0.0);
                for (std::size_t q = 0; q < std::min<std::size_t>(4, steps.size() - s); ++q) {
                    const std::size_t j = steps[s + q];
                    widen(H_ + j * n + i, h + q * block, count);
                    std::copy_n(&moved_[j * C], C, &a[q * C]);
                }
                for (std::size_t c = 0; c < C; ++c) add4(&a[c], C, x, F_ + c * n + i, count);
            }
        });
        std::fill(moved_.begin(), moved_.end(), 0.0);
        drift_ = 0;
    }
    // A step as large costs digits, and as far the scores may drift, before the exponentials must
    // be made anew.
    static constexpr double large = 4, far = sizeof(Real) == 4 ? 30 : 300;
};

template <class Steps>
std::array<double, 4> descend(const ScoredRows& rows, const std::int8_t* H, std::size_t t,
                              Steps steps, double* F, double theta, double price, double tol,
                              int max_sweeps) {
    if (tol >= 1e-4)
        return Descent<Steps, float>(rows, H, t, steps, F, theta, price).run(tol, max_sweeps);
    return Descent<Steps, double>(rows, H, t, steps, F, theta, price).run(tol, max_sweeps);
}

}  // namespace tcboost
