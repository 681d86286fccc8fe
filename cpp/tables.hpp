// Scores of an additive model, from one table for each feature it uses.
//
// A sum of stumps on one feature is a step function of it, so that a row costs one search and
// one table row a feature, however many stumps there are. Entries are multiples of a unit that no
// sum exceeds 2^53 times, so that sums are exact: no order of them decides.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.hpp"
#include "threads.hpp"

namespace tcboost {

struct StepTables {
    std::size_t n_used;           // features in use
    const std::int64_t* feature;  // which they are
    const std::int64_t* start;    // where their cuts start; n_used + 1 entries
    const double* cuts;           // ascending for each feature
    // For each feature a row for missing values, one for values up to the first cut, and one
    // for those above each cut; `stride` columns, a multiple of four.
    const double* table;
    const double* base;  // one such row, for all
    std::size_t stride;
};

// How many of the m cuts are below x; none for NaN. The step is an arithmetic one, as a branch
// would be mispredicted half of the time.
inline std::size_t count_below(const double* cuts, std::size_t m, double x) {
    const double* base = cuts;
    while (m > 1) {
        const std::size_t half = m / 2;
        base += base[half - 1] < x ? half : 0;
        m -= half;
    }
    return static_cast<std::size_t>(base - cuts) + (m == 1 && *base < x);
}

// Where values of a feature are among its cuts. For many rows equal buckets from the first cut to
// the last tell it up to the few cuts of one bucket, and only these are searched, in one or two
// steps on covertype where all cuts would take six: a third of the time. The bucket never falls as
// x grows, however it is rounded, so that no cut of another bucket is on the wrong side.
class Places {
   public:
    Places(const double* cuts, std::size_t n_cuts, bool many_rows)
        : cuts_(cuts), n_cuts_(n_cuts), most_(n_cuts) {
        if (!many_rows || n_cuts < 2) return;
        first_.resize(8 * n_cuts);
        low_ = cuts[0];
        scale_ = static_cast<double>(first_.size()) / (cuts[n_cuts - 1] - low_);
        for (std::size_t c = 0; c < n_cuts; ++c) ++first_[bucket(cuts[c])];
        most_ = *std::max_element(first_.begin(), first_.end());
        std::uint32_t below = 0;
        for (std::uint32_t& of_bucket : first_) {
            const std::uint32_t count = of_bucket;
            of_bucket = std::min(below, static_cast<std::uint32_t>(n_cuts - most_));
            below += count;
        }
    }

    // place[i] = zero + 0 where x[i] is missing, else 1 + the number of cuts below it.
    TCBOOST_WIDE void operator()(const double* x, std::size_t rows, std::uint32_t zero,
                                 std::uint32_t* place) const {
        if (n_cuts_ == 1) {  // several at a time: a sixth of all on covertype
            const double cut = *cuts_;
            for (std::size_t i = 0; i < rows; ++i)
                place[i] = zero + std::uint32_t(x[i] == x[i]) + std::uint32_t(cut < x[i]);
            return;
        }
        with_constant(most_, [=](auto most) {
            for (std::size_t i = 0; i < rows; ++i) {
                const std::uint32_t first = first_.empty() ? 0 : first_[bucket(x[i])];
                const std::size_t below = count_below(cuts_ + first, most, x[i]);
                place[i] = zero + (std::isnan(x[i]) ? 0 : 1 + first + std::uint32_t(below));
            }
        });
    }

   private:
    std::size_t bucket(double x) const {  // the first for NaN
        const double t = (x - low_) * scale_, last = static_cast<double>(first_.size() - 1);
        return static_cast<std::size_t>(static_cast<std::int64_t>(t > 0 ? std::min(t, last) : 0.0));
    }

    const double* cuts_;
    std::size_t n_cuts_, most_;  // in all, and of a bucket
    double low_ = 0.0, scale_ = 0.0;
    std::vector<std::uint32_t> first_;  // of each bucket, the first cut to search
};

// Rows are taken in small blocks, first copied row by row, as memory is read best (twice as fast in
// all); then the places of their values are looked up feature by feature, so that all searches
// in a row are as long; then the table rows of a row are added up.
constexpr std::size_t block_rows = 64;

// out[i, k] = base[k] plus the sum over u of table[place[u, i], k] for k < width. Stride is that of
// the table where the compiler shall know it, to keep the sums in registers, or zero.
//
// With `best` the k of the largest, the first on a tie, goes there instead: scores would cost as
// much to store as to compute.
template <std::size_t Stride>
TCBOOST_WIDE void add_table_rows(const StepTables& model, const std::uint32_t* place,
                                 std::size_t rows, std::size_t width, double* out,
                                 std::int64_t* best) {
    const std::size_t stride = Stride ? Stride : model.stride;
    std::vector<double> any(Stride ? 0 : stride);
    for (std::size_t i = 0; i < rows; ++i) {
        std::array<double, Stride ? Stride : 1> fixed;
        double* sums = Stride ? fixed.data() : any.data();
        std::copy_n(model.base, stride, sums);
        for (std::size_t u = 0; u < model.n_used; ++u) {
            const double* step = model.table + place[u * block_rows + i] * stride;
            for (std::size_t k = 0; k < stride; ++k) sums[k] += step[k];
        }
        if (best)
            best[i] = std::max_element(sums, sums + width) - sums;
        else
            std::copy_n(sums, width, out + i * width);
    }
}

// out[i, k] = base[k] and the sum over the features of their tables at X[i, feature], for k < width.
// X has the strides by_row and by_column; out is n x width by rows, or best has n entries.
inline void table_scores(const double* X, std::ptrdiff_t by_row, std::ptrdiff_t by_column,
                         std::size_t n, const StepTables& model, std::size_t width,
                         int n_threads, double* out, std::int64_t* best) {
    if (n * model.n_used * model.stride < 100000) n_threads = 1;  // not worth a thread
    const auto add = model.stride == 4   ? add_table_rows<4>
                     : model.stride == 8 ? add_table_rows<8>
                                         : add_table_rows<0>;
    std::vector<Places> places;
    places.reserve(model.n_used);
    for (std::size_t u = 0; u < model.n_used; ++u)
        places.emplace_back(model.cuts + model.start[u],
                            static_cast<std::size_t>(model.start[u + 1] - model.start[u]),
                            n >= 256);  // fewer rows are not worth the making
    constexpr std::size_t task_rows = 16 * block_rows;
    parallel_for((n + task_rows - 1) / task_rows, n_threads, [&](std::size_t task) {
        const std::unique_ptr<double[]> x(new double[model.n_used * block_rows]);
        const std::unique_ptr<std::uint32_t[]> place(new std::uint32_t[model.n_used * block_rows]);
        const std::size_t end = std::min(n, (task + 1) * task_rows);
        for (std::size_t first = task * task_rows; first < end; first += block_rows) {
            const std::size_t rows = std::min(block_rows, end - first);
            for (std::size_t i = 0; i < rows; ++i) {
                const double* from = X + static_cast<std::ptrdiff_t>(first + i) * by_row;
                for (std::size_t u = 0; u < model.n_used; ++u)
                    x[u * block_rows + i] = from[model.feature[u] * by_column];
            }
            for (std::size_t u = 0; u < model.n_used; ++u) {
                const std::size_t b = u * block_rows, missing = std::size_t(model.start[u]) + 2 * u;
                places[u](x.get() + b, rows, std::uint32_t(missing), place.get() + b);
            }
            add(model, place.get(), rows, width, best ? nullptr : out + first * width,
                best ? best + first : nullptr);
        }
    });
}

}  // namespace tcboost
