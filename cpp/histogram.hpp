// Sums of integer dual weights over rows, by feature and bin.
//
// Integers make the sums exact, so they do not depend on the order of the rows, on how the
// rows are cut into blocks, or on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.hpp"
#include "threads.hpp"
#include "weights.hpp"

namespace tcboost {

// Features with few bins are counted together, as groups whose cells are the combinations of
// bins that occur: covertype's 54 features make 11 groups, one of them of 44 binary features.
struct Groups {
    std::size_t n_groups, n_features;
    const std::int64_t* first;   // where the cells of a group start; n_groups + 1 entries
    const std::int64_t* group;   // of each feature
    const std::int32_t* place;   // feature by feature, the bin of each cell of its group
    const std::int64_t* offset;  // where the bins of a feature start; n_features + 1 entries
};

// Integers from the start of a cache line on: rows of eight that cross lines cost half as much
// again in `add_rows`, and where one cell has most of the rows three times as much.
struct alignas(64) Line {
    std::int64_t at[8];
};

// Room for so many, and never none: there is always a first line to point to.
inline std::vector<Line> lines(std::size_t size) { return std::vector<Line>(size / 8 + 1); }

// Add the rows of V (rows x stride) to their cells, in the groups from `begin` to `end`.
// Stride is that of V where the compiler shall know it, or zero. Two groups at a time take a tenth
// less: a row of V is read once for both.
template <std::size_t Stride, class Bin>
TCBOOST_WIDE void add_rows(const Bin* cells, std::size_t n, const std::int64_t* V, std::size_t rows,
              std::size_t any_stride, const Groups& groups, std::size_t begin, std::size_t end,
              std::int64_t* sums) {
    const std::size_t stride = Stride ? Stride : any_stride;
    constexpr std::size_t block = Stride ? Stride : 4;
    for (std::size_t at = begin; at < end; at += 2) {
        const bool two = at + 1 < end;
        std::int64_t* of_group = sums + static_cast<std::size_t>(groups.first[at]) * stride;
        std::int64_t* of_next = sums + static_cast<std::size_t>(groups.first[at + two]) * stride;
        const Bin* cell = cells + at * n;
        const Bin* next = cell + two * n;
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t k = 0; k < stride; k += block) {
                // By way of local arrays, or the compiler fears that the sums and v overlap.
                std::int64_t v[block], t[block];
                for (std::size_t j = 0; j < block; ++j) v[j] = V[i * stride + k + j];
                std::int64_t* sum = of_group + static_cast<std::size_t>(cell[i]) * stride + k;
                for (std::size_t j = 0; j < block; ++j) t[j] = sum[j] + v[j];
                for (std::size_t j = 0; j < block; ++j) sum[j] = t[j];
                if (!two) continue;
                sum = of_next + static_cast<std::size_t>(next[i]) * stride + k;
                for (std::size_t j = 0; j < block; ++j) t[j] = sum[j] + v[j];
                for (std::size_t j = 0; j < block; ++j) sum[j] = t[j];
            }
        }
    }
}

// Rows of V, the adjoint of pairwise margins, from their weights u (rows x width) and classes y;
// and the sums of V by class, if they are wanted. These have a loop of their own: to read what was
// written just before takes longer.
template <class Width>
TCBOOST_WIDE void pairwise_rows(Width width, const std::int64_t* u, const std::int64_t* y,
                                std::size_t rows, std::size_t stride, std::int64_t* V,
                                std::int64_t* by_class) {
    for (std::size_t r = 0; r < rows; ++r) {
        const std::int64_t* from = u + r * width;
        std::int64_t *v = V + r * stride, total = 0;
        const auto own = static_cast<std::size_t>(y[r]);
        for (std::size_t k = 0; k < width; ++k) {
            total += from[k];
            v[k + (k >= own)] = -from[k];
        }
        v[own] = total;
    }
    if (!by_class) return;
    for (std::size_t r = 0; r < rows; ++r) {
        const std::int64_t* from = V + r * stride;
        std::int64_t* TCBOOST_RESTRICT sum = by_class + static_cast<std::size_t>(y[r]) * stride;
        for (std::size_t k = 0; k < width + 1; ++k) sum[k] += from[k];
    }
}

// Sums of V by cell and, where it is the adjoint of pairwise margins, by class.
//
// V follows from the dual weights u of a row: it is u, or with the classes y the adjoint of
// margins, with a code M (`Codeword.adjoint`) M[y_i] u[i], else (`Pairwise.adjoint`, width is one
// more than that of u) V[i, y_i] is the sum of u[i], and the other classes have -u[i]. It is made for
// a few rows at a time and stays in the nearest cache. Threads may share a table if they add to
// different groups.
template <class Bin>
class Histogram {
  public:
    Histogram(const Bin* cells, const std::int64_t* y, const std::int8_t* M, const Groups& groups,
              std::size_t n, std::size_t width, std::size_t tables, std::size_t threads)
        : cells_(cells), y_(y), M_(M), groups_(groups), n_(n), width_(width),
          stride_(width <= 2 ? width : (width + 3) / 4 * 4),
          n_cells_(static_cast<std::size_t>(groups.first[groups.n_groups])),
          // A table starts a line of its own, and so do the rows of a thread.
          per_table_(((n_cells_ + classes()) * stride_ + 7) / 8 * 8),
          per_thread_((few() * stride_ + 7) / 8 * 8), tables_(tables),
          sums_(new Line[tables * per_table_ / 8 + 1]), V_(lines(threads * per_thread_)) {
        clear();
    }

    // Rows at a time, at the most: 64 kB of V, and a chunk of the weights. With a quarter of that
    // two threads took a fifth longer. No more than there are: to clear the rest took a tenth of
    // all on iris.
    std::size_t few() const {
        return std::clamp<std::size_t>(2 * weights_chunk / stride_, 1, std::max<std::size_t>(n_, 1));
    }

    // Rows of the result after those of the features.
    std::size_t classes() const { return y_ && !M_ ? width_ : 0; }

    // Every thread its own table, which is then near it.
    void clear() {
        const std::size_t size = per_table_ / 8;
        parallel_for(tables_, per_table_ < worth_threads ? 1 : int(tables_), [&](std::size_t t) {
            std::fill_n(sums_.get() + t * size, size + (t + 1 == tables_), Line{});
        });
    }

    std::size_t stride() const { return stride_; }

    // The room of a thread for few rows of V, and the sums by class of a table.
    std::int64_t* room(std::size_t thread) { return V_.data()->at + thread * per_thread_; }
    std::int64_t* of_classes(std::size_t table) {
        return sums_.get()->at + table * per_table_ + n_cells_ * stride_;
    }

    // The rows from i on, few at the most, whose weights are u; in the groups from `begin`
    // to `end`.
    void add(std::size_t i, std::size_t rows, const std::int64_t* u, std::size_t begin,
             std::size_t end, std::size_t table, std::size_t thread) {
        make_V(i, rows, u, room(thread), begin == 0 && classes() ? of_classes(table) : nullptr);
        add_room(i, rows, begin, end, table, thread);
    }

    // The same of rows whose V is in the room.
    void add_room(std::size_t i, std::size_t rows, std::size_t begin, std::size_t end,
                  std::size_t table, std::size_t thread) {
        const auto add = stride_ == 1   ? add_rows<1, Bin>
                         : stride_ == 2 ? add_rows<2, Bin>
                         : stride_ == 4 ? add_rows<4, Bin>
                         : stride_ == 8 ? add_rows<8, Bin>
                                        : add_rows<0, Bin>;
        add(cells_ + i, n_, room(thread), rows, stride_, groups_, begin, end,
            sums_.get()->at + table * per_table_);
    }

    // out[offset[d] + b, k] = sum of V[i, k] over the rows with 1 <= bin of (i, d) <= b, for
    // b >= 1; row offset[d] holds the sum over the missing values, bin 0. Then a row a class.
    void prefix_sums(std::int64_t* out, int n_threads) {
        std::int64_t* sums = sums_.get()->at;
        const int threads = n_cells_ * stride_ < worth_threads ? 1 : n_threads;
        if (tables_ > 1)
            parallel_for(tables_, threads, [&](std::size_t part) {
                const std::size_t end = per_table_ * (part + 1) / tables_;
                for (std::size_t t = 1; t < tables_; ++t)
                    for (std::size_t j = per_table_ * part / tables_; j < end; ++j)
                        sums[j] += sums[t * per_table_ + j];
            });
        std::vector<const std::int32_t*> place(groups_.n_features + 1, groups_.place);
        for (std::size_t d = 0; d < groups_.n_features; ++d) {
            const std::int64_t* of_group = groups_.first + groups_.group[d];
            place[d + 1] = place[d] + (of_group[1] - of_group[0]);
        }
        parallel_for(groups_.n_features, threads, [&](std::size_t d) {
            const auto first = static_cast<std::size_t>(groups_.offset[d]);
            const auto bins = static_cast<std::size_t>(groups_.offset[d + 1]) - first;
            const std::int64_t* cell = sums + groups_.first[groups_.group[d]] * std::int64_t(stride_);
            sum_up(cell, place[d], std::size_t(place[d + 1] - place[d]), bins, out + first * width_);
        });
        const auto n_bins = static_cast<std::size_t>(groups_.offset[groups_.n_features]);
        for (std::size_t c = 0; c < classes(); ++c)
            std::copy_n(sums + (n_cells_ + c) * stride_, width_, out + (n_bins + c) * width_);
    }

  private:
    // Sums from which on threads clear, merge and add them up in less time than it takes to call
    // them: with two of them 0.3 ms less of a round on covertype, a fortieth.
    static constexpr std::size_t worth_threads = 1 << 15;

    // Those of the bins of a feature, from those of the cells of its group.
    void sum_up(const std::int64_t* cells, const std::int32_t* place, std::size_t n_cells,
                std::size_t bins, std::int64_t* out) const {
        std::fill(out, out + bins * width_, 0);
        with_constant(width_, [&](auto width) {
            for (std::size_t c = 0; c < n_cells; ++c) {
                std::int64_t* bin = out + static_cast<std::size_t>(place[c]) * width;
                for (std::size_t k = 0; k < width; ++k) bin[k] += cells[c * stride_ + k];
            }
            for (std::size_t j = 2 * width; j < bins * width; ++j) out[j] += out[j - width];
        });
    }

    void make_V(std::size_t i, std::size_t rows, const std::int64_t* u, std::int64_t* V,
                std::int64_t* by_class) const {
        const std::size_t stride = stride_, K = width_ - (classes() ? 1 : 0);
        if (classes())
            return with_constant(K, [=](auto w) {
                pairwise_rows(w, u, y_ + i, rows, stride, V, by_class);
            });
        for (std::size_t r = 0; r < rows; ++r) {
            const std::int64_t* from = u + r * K;
            if (!y_) {
                std::copy(from, from + K, V + r * stride);
                continue;
            }
            const std::int8_t* code = M_ + static_cast<std::size_t>(y_[i + r]) * K;
            for (std::size_t k = 0; k < K; ++k) V[r * stride + k] = code[k] * from[k];
        }
    }

    const Bin* cells_;
    const std::int64_t* y_;
    const std::int8_t* M_;
    const Groups& groups_;
    std::size_t n_, width_, stride_, n_cells_, per_table_, per_thread_, tables_;
    std::unique_ptr<Line[]> sums_;
    std::vector<Line> V_;
};

// As many tables of sums as there are threads, as long as these are few.
inline std::size_t tables_for(const Groups& groups, std::size_t n, std::size_t threads) {
    const auto n_cells = static_cast<std::size_t>(groups.first[groups.n_groups]);
    return std::min(threads, 1 + n * groups.n_groups / (4 * n_cells + 1));
}

// cells is n x n_groups by columns, u is n x K by rows, out is what `Histogram` gives.
template <class Bin>
void prefix_sums(const Bin* cells, const std::int64_t* u, const std::int64_t* y,
                 const std::int8_t* M, const Groups& groups, std::size_t n, std::size_t width,
                 int n_threads, std::int64_t* out) {
    // Below this much work a thread costs more than it saves.
    const bool little = n * groups.n_groups * width < 100000;
    const std::size_t threads = little ? 1 : std::max(n_threads, 1);
    // Each slice of the rows has a table; the other threads share the groups of a slice.
    const std::size_t slices = tables_for(groups, n, threads);
    const std::size_t parts = std::min(groups.n_groups, (threads + slices - 1) / slices);
    Histogram<Bin> histogram(cells, y, M, groups, n, width, slices, slices * parts);
    const std::size_t K = width - (histogram.classes() ? 1 : 0);
    parallel_for(slices * parts, n_threads, [&](std::size_t task) {
        const std::size_t slice = task / parts, part = task % parts;
        const std::size_t begin = groups.n_groups * part / parts;
        const std::size_t end = groups.n_groups * (part + 1) / parts;
        for (std::size_t i = n * slice / slices, last = n * (slice + 1) / slices; i < last;) {
            const std::size_t rows = std::min(histogram.few(), last - i);
            histogram.add(i, rows, u + i * K, begin, end, slice, task);
            i += rows;
        }
    });
    histogram.prefix_sums(out, n_threads);
}

// The same of the dual weights at the margins z, which are never held as a whole: there is no
// array of the size of z to write and read. With one thread that gains nothing, with two it seemed
// a fifth of a round on covertype. With many cells it takes the two steps.
template <class Bin>
DualIntegers weigh_and_sum(const Bin* cells, const double* z, const double* weight,
                           const std::int64_t* y, const std::int8_t* M,
                           const Groups& groups, std::size_t n, std::size_t width, int n_threads,
                           std::int64_t* out) {
    const std::size_t K = width - (M ? 0 : 1), threads = std::max(n_threads, 1);
    if (tables_for(groups, n, threads) < threads) {
        std::vector<std::int64_t> u(n * K);
        const DualIntegers dual =
            dual_integers(z, weight, n, K, n_threads, InMemory{u.data(), K});
        prefix_sums(cells, u.data(), y, M, groups, n, width, n_threads, out);
        return dual;
    }
    struct Added {
        Histogram<Bin> histogram;
        std::size_t n_groups, room;
        std::vector<std::int64_t> u;

        void clear() { histogram.clear(); }
        std::int64_t* rows(std::size_t, std::size_t thread) { return u.data() + thread * room; }
        void done(std::size_t i, std::size_t m, std::size_t thread) {
            histogram.add(i, m, rows(i, thread), 0, n_groups, thread, thread);
        }
    };
    const std::size_t room = std::min(n, chunk_of_rows(K)) * K;
    Added added{Histogram<Bin>(cells, y, M, groups, n, width, threads, threads),
                groups.n_groups, room, std::vector<std::int64_t>(threads * room)};
    const DualIntegers dual = dual_integers(z, weight, n, K, n_threads, added);
    added.histogram.prefix_sums(out, n_threads);
    return dual;
}

}  // namespace tcboost
