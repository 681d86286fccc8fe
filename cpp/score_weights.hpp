// The dual weights of class scores, kept up to date while one hypothesis after the other moves: what
// block coordinate descent (`descent.hpp`) asks of the rows. Sums are in an order that depends on the
// number of rows alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "dense.hpp"
#include "weights.hpp"

namespace tcboost {

struct ScoredRows {
    std::size_t n, n_classes;
    const std::int64_t* start;  // rows are sorted by class: class c has start[c] .. start[c + 1]
    const double* weight;
    bool exponential;  // log mean exp(-margin), or else the cross-entropy
    int n_threads;     // no result depends on it
};

// A product of vectors in 64 bytes of sums side by side: fast, and the same on every machine.
template <class Real>
struct Dot {
    Real s[64 / sizeof(Real)] = {};
    double value() const {
        double sum = 0;
        for (std::size_t k = 0; k < 64 / sizeof(Real); ++k) sum += s[k];
        return sum;
    }
};

// sums[c] += x . E_c for K vectors that are `stride` apart
template <std::size_t K, class Real>
TCBOOST_WIDE void add_dots(const Real* x, const Real* E, std::size_t stride, std::size_t n,
                           Dot<Real>* sums) {
    constexpr std::size_t width = 32 / sizeof(Real);
    Pack<Real> s[K][2], low, high, e;
    std::memcpy(s, sums, sizeof s);
    std::size_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        std::memcpy(&low, x + i, sizeof low), std::memcpy(&high, x + i + width, sizeof high);
        for (std::size_t c = 0; c < K; ++c) {
            std::memcpy(&e, E + c * stride + i, sizeof e), s[c][0] += low * e;
            std::memcpy(&e, E + c * stride + i + width, sizeof e), s[c][1] += high * e;
        }
    }
    std::memcpy(sums, s, sizeof s);
    for (; i < n; ++i)
        for (std::size_t c = 0; c < K; ++c) sums[c].s[0] += x[i] * E[c * stride + i];
}

template <class Real>
double dot(const Real* a, const Real* b, std::size_t n) {
    if (n <= 64 / sizeof(Real)) {  // without a call
        double few = 0;
        for (std::size_t i = 0; i < n; ++i) few += Real(a[i] * b[i]);
        return few;
    }
    Dot<Real> sum;
    add_dots<1>(a, b, 0, n, &sum);
    return sum.value();
}

// y += a x
TCBOOST_WIDE inline void add(double a, const double* x, double* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// y += sum over k < 4 of a[k * stride] x[k]
TCBOOST_WIDE inline void add4(const double* a, std::size_t stride, const double* const* x,
                              double* y, std::size_t n) {
    const double a0 = a[0], a1 = a[stride], a2 = a[2 * stride], a3 = a[3 * stride];
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    for (std::size_t i = 0; i < n; ++i)
        y[i] += (a0 * x0[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

template <class Real>
TCBOOST_WIDE void widen(const std::int8_t* h, Real* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = h[i];
}

// top = max(top, x) for the rows from `first` to `last`
TCBOOST_WIDE inline void raise(const double* x, std::size_t first, std::size_t last, double* top) {
    for (std::size_t i = first; i < last; ++i) top[i] = x[i] > top[i] ? x[i] : top[i];
}
// out = min(0, x - top)
TCBOOST_WIDE inline void below(const double* x, const double* top, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = x[i] < top[i] ? x[i] - top[i] : 0.0;
}
// sum += x, out = x
template <class Real>
TCBOOST_WIDE void narrow(const double* x, double* sum, Real* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += x[i], out[i] = Real(x[i]);
}

// out = a b and a / b
template <class Number, class Real>
TCBOOST_WIDE void multiply(const Number* a, const Real* b, Real* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}
template <class Real>
TCBOOST_WIDE void divide(const Real* a, const Real* b, Real* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] / b[i];
}

// E_c *= up_c + tilt_c h for K classes, each added to sum
template <std::size_t K, class Real>
TCBOOST_WIDE void grow(const Real* up, const Real* tilt, const std::int8_t* h, Real* E,
                       std::size_t stride, Real* sum, std::size_t n) {
    TCBOOST_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
        const Real x = h[i];
        Real total = sum[i];
        for (std::size_t c = 0; c < K; ++c) {
            const Real e = E[c * stride + i] * (up[c] + tilt[c] * x);
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

// Exponentials of the scores, and what the gradient and the curvature need of them. In single
// precision, which is good for gaps of about 1e-5 and is faster, or in double.
template <class Real>
class Weights {
  public:
    double loss = 0, slope = 0;  // slope: <F, minus the gradient by F>

    // H: t hypotheses by columns
    Weights(const ScoredRows& rows, const std::int8_t* H, std::size_t t)
        : r_(rows), H_(H), E_(rows.n * rows.n_classes), sum_(rows.n), scale_(rows.n),
          own_(rows.weight, rows.weight + rows.n),
          block_(std::min(
              std::clamp<std::size_t>(near / sizeof(Real) / rows.n_classes / 32, 2, 64) * 32, rows.n)),
          up_(rows.n_classes), tilt_(rows.n_classes),
          minus_((rows.n + chunk_rows - 1) / chunk_rows * rows.n_classes) {
        if (!rows.exponential)
            for (std::size_t j = 0; j < t; ++j)
                for (std::size_t c = 0; c < rows.n_classes; ++c) plus_.push_back(plus(j, c));
    }

    // From the scores F, without what rounding has piled up.
    void refresh(const double* F) {
        const std::size_t n = r_.n, C = r_.n_classes;
        std::vector<double> top(n, -INFINITY), own(n);
        add_up(0, [&](std::size_t first, std::size_t last, double*) {
            for (std::size_t c = 0; c < C; ++c) {
                const auto [from, to] = owned(c, first, last);
                std::copy(F + c * n + from, F + c * n + to, &own[0] + from);
                raise(F + c * n, first, r_.exponential ? from : last, top.data());
                if (r_.exponential) raise(F + c * n, to, last, top.data());
            }
        });
        double most = -INFINITY;
        for (std::size_t i = 0; i < n; ++i) most = std::max(most, top[i] - own[i]);
        add_up(3, [&](std::size_t first, std::size_t last, double* sums) {
            std::vector<double> x(block_ * C), sum(block_);
            for (; first < last; first += block_) {
                const std::size_t m = std::min(block_, last - first);
                std::fill_n(sum.begin(), m, 0.0);
                for (std::size_t c = 0; c < C; ++c) {
                    double* e = &x[c * block_];
                    below(F + c * n + first, &top[first], e, m);
                    exp_all(e, m);
                    if (r_.exponential) {
                        const auto [from, to] = owned(c, first, first + m);
                        std::fill(e + (from - first), e + (to - first), 0.0);
                    }
                    narrow(e, &sum[0], &E_[c * n + first], m);
                }
                for (std::size_t i = 0; i < m; ++i) {
                    const std::size_t row = first + i;
                    double scale = r_.weight[row] / sum[i], whole = r_.weight[row];
                    if (r_.exponential) {
                        scale = whole / double(C - 1) * std::exp(top[row] - own[row] - most);
                        whole = scale * sum[i];
                    }
                    double mean = 0;
                    for (std::size_t c = 0; c < C; ++c)
                        mean += x[c * block_ + i] * F[c * n + row];
                    sums[0] += whole * own[row] - scale * mean;
                    sums[1] += whole;
                    sums[2] += whole * (top[row] + std::log(sum[i]) - own[row]);
                    own_[row] = Real(whole);
                    scale_[row] = Real(scale);
                    sum_[row] = Real(sum[i]);
                }
            }
        });
        if (r_.exponential) total_ = sums_[1];
        slope = sums_[0] / total_;
        loss = r_.exponential ? most + std::log(total_) : sums_[2];
        moved_ = nullptr;
    }

    // Minus the gradient by the class vector of h_j, after the last move: both in one pass over
    // blocks of rows that stay in the nearest cache.
    void gradient(std::size_t j, double* g) {
        const std::size_t n = r_.n, C = r_.n_classes;
        const std::int8_t* h = H_ + j * n;
        std::fill(minus_.begin(), minus_.end(), Dot<Real>());
        add_up(C + 1, [&](std::size_t first, std::size_t last, double* sums) {
            Real u[most_rows];
            Dot<Real>* minus = &minus_[first / chunk_rows * C];
            for (; first < last; first += block_) {
                const std::size_t m = std::min(block_, last - first);
                if (moved_) move(first, m, sums[C]);
                multiply(h + first, &scale_[first], u, m);
                by_fours(C, [&](std::size_t c, auto K) {
                    add_dots<K>(u, &E_[c * n + first], n, m, minus + c);
                });
            }
            for (std::size_t c = 0; c < C; ++c) sums[c] = minus[c].value();
        });
        if (moved_ && r_.exponential) total_ = sums_[C];
        moved_ = nullptr;
        for (std::size_t c = 0; c < C; ++c)
            g[c] = ((r_.exponential ? plus(j, c) : plus_[j * C + c]) - sums_[c]) / total_;
    }

    // The scores move by h_j step, when the next gradient is asked for.
    void move(std::size_t j, const double* step) {
        moved_ = H_ + j * r_.n;
        for (std::size_t c = 0; c < r_.n_classes; ++c) {
            const double up = std::exp(step[c]) / 2, down = 0.25 / up;
            up_[c] = Real(up + down);
            tilt_[c] = Real(up - down);
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
        add_up(C * C, [&](std::size_t first, std::size_t last, double* sums) {
            Real u[most_rows];
            for (; first < last; first += block_) {
                const std::size_t m = std::min(block_, last - first);
                for (std::size_t c = 0; c < C; ++c) {
                    multiply(&scale_[first], &E_[c * n + first], u, m);
                    if (r_.exponential) {
                        by_class(first, m, [&](std::size_t y, std::size_t from, std::size_t count) {
                            const Real* part = u + (from - first);
                            sums[c * C + y] += std::accumulate(part, part + count, 0.0) / total_;
                        });
                    } else {
                        divide(u, &sum_[first], u, m);
                        for (std::size_t k = 0; k < c; ++k)
                            sums[c * C + k] += dot(u, &E_[k * n + first], m);
                    }
                }
            }
        });
        for (std::size_t c = 0; c < C; ++c)
            for (std::size_t k = 0; k < C; ++k)
                if (k != c) couple(c, k, sums_[c * C + k]);
    }

  private:
    ScoredRows r_;
    const std::int8_t* H_;
    // Class c of row i has the dual weight scale[i] E[c, i] / total; own[i] is the sum of a row.
    std::vector<Real> E_, sum_, scale_, own_;
    std::size_t block_;  // rows whose exponentials stay in the nearest cache
    std::vector<Real> up_, tilt_;
    std::vector<Dot<Real>> minus_;
    std::vector<double> plus_;  // of all j and c, where own never changes
    std::vector<double> sums_, parts_;
    double total_ = 1;
    const std::int8_t* moved_ = nullptr;  // the hypothesis of a move that is still to be made
    static constexpr std::size_t near = 1 << 14;         // bytes
    static constexpr std::size_t most_rows = 2048;       // of a block
    static constexpr std::size_t chunk_rows = 1 << 11;   // of a task
    static constexpr std::size_t for_threads = 1 << 16;  // exponentials: fewer are not worth one

    // The rows of class c among those from `first` to `last`, or where they would be. They are in one
    // piece: to ask of every row whose it is takes 2 % more of a fit (pendigits).
    std::pair<std::size_t, std::size_t> owned(std::size_t c, std::size_t first,
                                              std::size_t last) const {
        return {std::clamp(std::size_t(r_.start[c]), first, last),
                std::clamp(std::size_t(r_.start[c + 1]), first, last)};
    }

    // Into sums_: `width` sums of what work(first, last, sums) adds up for the rows of a chunk.
    template <class Work>
    void add_up(std::size_t width, Work work) {
        const std::size_t n = r_.n, chunks = (n + chunk_rows - 1) / chunk_rows;
        parts_.assign(chunks * width, 0.0);
        parallel_for(chunks, n * r_.n_classes < for_threads ? 1 : r_.n_threads, [&](std::size_t k) {
            work(k * chunk_rows, std::min(n, (k + 1) * chunk_rows), parts_.data() + k * width);
        });
        sums_.assign(width, 0.0);
        for (std::size_t k = 0; k < chunks; ++k)
            for (std::size_t j = 0; j < width; ++j) sums_[j] += parts_[k * width + j];
    }

    // The own weights of class c times h_j. They may be equal, and what rounding takes from a long
    // sum is then the same each time: with 500,000 rows it hid gaps below 4e-4.
    double plus(std::size_t j, std::size_t c) const {
        Real u[most_rows];
        double total = 0;
        const std::size_t last = r_.start[c + 1];
        for (std::size_t i = r_.start[c]; i < last; i += most_rows) {
            const std::size_t m = std::min(most_rows, last - i);
            Dot<Real> sum;
            widen(H_ + j * r_.n + i, u, m);
            add_dots<1>(u, &own_[i], 0, m, &sum);
            total += sum.value();
        }
        return total;
    }

    // Call work(c, from, count) for the classes of m rows from `first` on.
    template <class Work>
    void by_class(std::size_t first, std::size_t m, Work work) const {
        const auto* end = r_.start + r_.n_classes;
        const auto* c = std::upper_bound(r_.start, end, std::int64_t(first)) - 1;
        for (std::size_t from = first, last = first + m; from < last; ++c) {
            const std::size_t to = std::min<std::size_t>(last, c[1]);
            if (from < to) work(std::size_t(c - r_.start), from, to - from);
            from = std::max(from, to);
        }
    }

    // The rows from `first` on make the last move; `total` gets the sum of their weights.
    void move(std::size_t first, std::size_t m, double& total) {
        std::fill_n(&sum_[first], m, Real(0));
        by_fours(r_.n_classes, [&](std::size_t c, auto K) {
            grow<K>(&up_[c], &tilt_[c], moved_ + first, &E_[c * r_.n + first], r_.n, &sum_[first], m);
        });
        if (r_.exponential) {
            by_class(first, m, [&](std::size_t c, std::size_t from, std::size_t count) {
                for (std::size_t i = from; i < from + count; ++i)
                    scale_[i] /= up_[c] + tilt_[c] * moved_[i];
            });
            multiply(&scale_[first], &sum_[first], &own_[first], m);
            total = std::accumulate(&own_[first], &own_[first] + m, total);
        } else {
            divide(&own_[first], &sum_[first], &scale_[first], m);
        }
    }
};

}  // namespace tcboost
