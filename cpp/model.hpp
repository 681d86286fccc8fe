// The quadratic model of a loss, by which the restricted master takes its steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gram.hpp"
#include "simplex_qp.hpp"

namespace tcboost {

// Rows that are parts of the rows there were: of which one, and which share of its weight.
struct Split {
    const std::vector<std::uint32_t>& parent;
    const Vector& share;
    std::size_t width;  // margins of a row

    void margins(std::shared_ptr<const Vector>& z) const { move(z, false); }
    void weights(std::shared_ptr<const Vector>& u) const { move(u, true); }

   private:
    void move(std::shared_ptr<const Vector>& values, bool shared) const {
        if (!values || values->empty()) return;  // not known
        auto moved = std::make_shared<Vector>(parent.size() * width);
        double* out = moved->data();
        for (std::size_t i = 0; i < parent.size(); ++i) {
            const double* from = values->data() + parent[i] * width;
            for (std::size_t k = 0; k < width; ++k) *out++ = shared ? share[i] * from[k] : from[k];
        }
        values = std::move(moved);
    }
};

// The quadratic model of a loss near some weights, on some of the columns.
//
// Once formed it serves several steps, and takes in single columns at the weights where it was
// formed, so that it stays positive definite. The factor of the free variables is kept too.
template <class Column>
class Model {
   public:
    explicit Model(bool growing) : growing_(growing) {}
    bool formed() const { return !cols_.empty(); }
    std::size_t size() const { return cols_.size(); }
    bool has(std::size_t j) const { return j < place_.size() && place_[j] != kNone; }
    bool outgrown() const { return 10 * size() > 16 * first_size_ + 160; }
    void forget() { cols_.clear(), place_.clear(), h_.reset(); }
    void split(const Split& rows) { rows.weights(h_); }

    // H_jk = sum_i h_i (P_ij - c_j) (P_ik - c_k), with a proximal ridge for flat directions
    // (duplicated columns), which moves no optimum: relative to each column, since their scales
    // may differ, and at least `scale`. In float64; or narrow, in float32. Should what extends a model
    // not fit, by rounding, it is formed anew.
    void form(const std::vector<const Column*>& columns, std::vector<std::size_t> cols,
              std::shared_ptr<const Vector> at, const Vector& g, bool centred, bool narrow,
              double ridge, double scale, int n_threads) {
        cols_ = std::move(cols), first_size_ = size(), centred_ = centred, ridge_ = ridge;
        h_ = std::move(at);
        const Vector& h = *h_;
        const std::size_t q = size();
        place_.assign(columns.size(), kNone);
        centre_.assign(q, 0.0);
        std::vector<const Column*> used(q);
        for (std::size_t j = 0; j < q; ++j) {
            used[j] = columns[cols_[j]], place_[cols_[j]] = j;
            if (centred) centre_[j] = g[cols_[j]];
        }
        reserve(q, growing_ ? 2 * q : columns.size());
        if (narrow)
            Gram<float>(h.data(), h.size(), kLeast)
                .form(used.data(), centre_.data(), q, H_.data(), stride_, n_threads);
        else
            Gram<double>(h.data(), h.size(), kLeast)
                .form(used.data(), centre_.data(), q, H_.data(), stride_, n_threads);
        double largest = 0.0;
        for (std::size_t j = 0; j < q; ++j) largest = std::max(largest, H_[j * stride_ + j]);
        scale_ = std::max(1e-6 * largest, scale);
        for (std::size_t j = 0; j < q; ++j) {
            for (std::size_t k = 0; k < j; ++k) H_[j * stride_ + k] = H_[k * stride_ + j];
            H_[j * stride_ + j] += ridge * std::max(H_[j * stride_ + j], scale_);
        }
        free_.clear();
    }

    // One more column: a row of H; `weighted` is room for a column.
    void extend(const std::vector<const Column*>& columns, std::size_t col, bool integers,
                int n_threads, Vector& weighted) {
        const std::size_t q = size(), n = h_->size();
        reserve(q + 1, 2 * q);
        place_.resize(columns.size(), kNone);
        place_[col] = q;
        cols_.push_back(col);
        const double centre = centred_ ? column_inner(*columns[col], h_->data(), n) : 0.0;
        typename Column::Number room[kBlock + kSlack];
        for (std::size_t start = 0; start < n; start += kBlock) {
            const std::size_t size = std::min(kBlock, n - start);
            const auto* numbers = columns[col]->at(start, size, room);
            for (std::size_t i = 0; i < size; ++i)
                weighted[start + i] =
                    (*h_)[start + i] * (static_cast<double>(numbers[i]) - centre);
        }
        const double total = sum(weighted);
        centre_.push_back(centre);
        std::vector<const Column*> used(q + 1);
        for (std::size_t j = 0; j <= q; ++j) used[j] = columns[cols_[j]];
        double* row = H_.data() + q * stride_;
        column_inners(used, weighted, integers, n_threads, row);
        for (std::size_t j = 0; j <= q; ++j)
            H_[j * stride_ + q] = row[j] = row[j] - centre_[j] * total;
        double& own = row[q];
        own += ridge_ * std::max(own, scale_);
    }

    // The best step d from w by the model; false if it is not positive definite.
    bool step(const Vector& g, double theta, const Vector& w, Vector& d) {
        const std::size_t q = size();
        Vector slopes(q), start(q), step;
        for (std::size_t j = 0; j < q; ++j) slopes[j] = g[cols_[j]], start[j] = w[cols_[j]];
        if (!SimplexQp(H_.data(), stride_, slopes, theta, start, free_).solve(step)) {
            forget();
            return false;
        }
        d.assign(w.size(), 0.0);
        for (std::size_t j = 0; j < q; ++j) d[cols_[j]] = step[j];
        return true;
    }

   private:
    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    static constexpr double kLeast = 1e-20;  // what has a lower h is lost in rounding

    // Room for q columns, and for some of those that may follow.
    void reserve(std::size_t q, std::size_t most) {
        if (q <= stride_) return;
        const std::size_t stride = (std::max(q, std::min(q + q / 2, most)) + 15) / 16 * 16;
        Vector grown(stride * stride);
        for (std::size_t j = 0; j < std::min(stride_, q); ++j)
            std::copy(H_.begin() + static_cast<std::ptrdiff_t>(j * stride_),
                      H_.begin() + static_cast<std::ptrdiff_t>((j + 1) * stride_),
                      grown.begin() + static_cast<std::ptrdiff_t>(j * stride));
        H_ = std::move(grown), stride_ = stride;
    }

    std::vector<std::size_t> cols_, place_;
    std::shared_ptr<const Vector> h_;
    Vector centre_, H_;
    std::size_t stride_ = 0, first_size_ = 0;
    bool centred_ = false;
    double ridge_ = 0.0, scale_ = 0.0;
    Cholesky free_;
    bool growing_;
};

}  // namespace tcboost
