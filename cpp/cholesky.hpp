// The Cholesky factor of some rows and columns of a matrix, which come and go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "dense.hpp"

namespace tcboost {

// H_FF = L L^T for a list F of variables that come and go.
class Cholesky {
   public:
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

}  // namespace tcboost
