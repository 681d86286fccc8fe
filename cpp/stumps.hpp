// Stumps, as a search over the bins of the rows finds them: their signs, and which to take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace tcboost {

// out[i] = inside for the cells from `first` on, `count` of them, else -inside.
template <class Bin>
TCBOOST_WIDE void signs_of_range(const Bin* cells, std::size_t n, Bin first, Bin count,
                                 std::int8_t inside, std::int8_t* TCBOOST_RESTRICT out) {
    const auto outside = std::int8_t(-inside);
    for (std::size_t i = 0; i < n; ++i) out[i] = Bin(cells[i] - first) < count ? inside : outside;
}

// What a stump says of rows: sign where the bin of a row is above the cut, or missing (0) with those
// to the right, else -sign. `bins` has the bins of the cells that the rows are in.
template <class Bin>
class StumpSigns {
   public:
    StumpSigns(const Bin* cells, const std::int32_t* bins, std::size_t n_cells, std::int64_t cut,
               bool missing_right, std::int8_t sign)
        : cells_(cells), table_(n_cells) {
        for (std::size_t c = 0; c < n_cells; ++c)
            table_[c] = bins[c] > cut || (missing_right && bins[c] == 0) ? sign : std::int8_t(-sign);
        if (n_cells == 0) return;  // and no rows
        // The cells of a feature that has a group for itself are its bins, and so those on one side
        // a range: to compare takes a tenth of the time of looking up.
        inside_ = std::int8_t(-table_[0]);
        const auto first = std::find(table_.begin(), table_.end(), inside_);
        const auto last = std::find(first, table_.end(), table_[0]);
        first_ = Bin(first - table_.begin()), count_ = Bin(last - first);
        is_range_ = std::find(last, table_.end(), inside_) == table_.end();
    }

    void write(std::size_t start, std::size_t n, std::int8_t* TCBOOST_RESTRICT out) const {
        const Bin* cells = cells_ + start;
        if (is_range_) return signs_of_range(cells, n, first_, count_, inside_, out);
        for (std::size_t i = 0; i < n; ++i) out[i] = table_[cells[i]];
    }

   private:
    const Bin* cells_;
    std::vector<std::int8_t> table_;
    Bin first_ = 0, count_ = 0;
    std::int8_t inside_ = 0;
    bool is_range_ = true;
};

// out[i, j] is what stump j says of row i. In blocks, of which what was written stays in the cache:
// the stumps of a row are side by side. Threads gain nothing here.
template <class Bin>
void stump_signs(const std::vector<StumpSigns<Bin>>& stumps, std::size_t n, std::int8_t* out) {
    constexpr std::size_t block = 2048;
    const std::size_t k = stumps.size();
    if (k == 1) return stumps[0].write(0, n, out);
    std::int8_t signs[block];
    for (std::size_t start = 0; start < n; start += block) {
        const std::size_t size = std::min(block, n - start);
        for (std::size_t j = 0; j < k; ++j) {
            stumps[j].write(start, size, signs);
            for (std::size_t i = 0; i < size; ++i) out[(start + i) * k + j] = signs[i];
        }
    }
}

// A[j] = total - 2 (sums of the weights on the left of stump j): the edge of j with the sign +1.
// `left` is the row of the sums that has the values up to the cut, `missing` that of the missing
// ones where they are on the left; below zero there is none. Two rows make the total.
inline void stump_edges(const std::int64_t* sums, std::size_t width, const std::int64_t* left,
                        const std::int64_t* missing, std::size_t n,
                        std::pair<std::size_t, std::size_t> rows, std::int64_t* A) {
    // With the width known to the compiler it takes half the time (15,000 stumps of covertype).
    with_constant(width, [&](auto w) {
        std::vector<std::int64_t> total(w);
        for (std::size_t k = 0; k < w; ++k)
            total[k] = sums[rows.first * w + k] + sums[rows.second * w + k];
        const std::int64_t* all = total.data();
        for (std::size_t j = 0; j < n; ++j) {
            std::int64_t* TCBOOST_RESTRICT a = A + j * w;
            const std::int64_t twice = left[j] < 0 ? 0 : 2;
            const std::int64_t* some = sums + std::size_t(twice ? left[j] : 0) * w;
            for (std::size_t k = 0; k < w; ++k) a[k] = all[k] - twice * some[k];
            if (missing[j] < 0) continue;
            some = sums + std::size_t(missing[j]) * w;
            for (std::size_t k = 0; k < w; ++k) a[k] -= 2 * some[k];
        }
    });
}

// Edges of t columns of stumps: those of their stumps, the rows of A (by rows of `width`) at their
// places times their signs. A column has one stump for each column of A (n_stumps is the width), or
// one stump with a code, which its signs are, and its edge is then the sum of what the classes add.
inline void column_edges(const std::int64_t* A, std::size_t width, const std::int64_t* places,
                         const std::int64_t* signs, std::size_t t, std::size_t n_stumps,
                         std::int64_t* out) {
    for (std::size_t j = 0; j < t * n_stumps; ++j) {
        const std::int64_t* a = A + static_cast<std::size_t>(places[j]) * width;
        if (n_stumps == width)
            out[j] = signs[j] * a[j % width];
        else
            out[j] = std::inner_product(a, a + width, signs + j * width, std::int64_t{0});
    }
}

// For each code of m (width x n_codes, by rows) the row j of A (n x width) whose edge |A[j] m| is
// the largest, the first on a tie, and A[j] m. Without codes every row has the best code there is,
// with the sum of |A[j]| as its edge. For the 2,044 stumps of covertype it takes 6 to 10
// microseconds, in NumPy 15.
inline std::vector<std::pair<std::int64_t, std::int64_t>> largest(const std::int64_t* A,
                                                                  std::size_t n, std::size_t width,
                                                                  const std::int8_t* m,
                                                                  std::size_t n_codes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> best(m ? n_codes : 1, {0, 0});
    for (std::size_t l = 0; l < best.size(); ++l)
        with_constant(width, [&](auto w) {
            std::int64_t most = -1;
            for (std::size_t j = 0; j < n; ++j) {
                std::int64_t sum = 0;
                for (std::size_t k = 0; k < w; ++k) {
                    const std::int64_t a = A[j * w + k];
                    sum += m ? a * m[k * n_codes + l] : std::abs(a);
                }
                if (std::abs(sum) <= most) continue;
                most = std::abs(sum);
                best[l] = {std::int64_t(j), sum};
            }
        });
    return best;
}

// most[k] = the largest |A[j, k]| of the rows from `first` to `last`, and row[k] the first of these.
TCBOOST_WIDE inline void largest_by_column(const std::int64_t* TCBOOST_RESTRICT A,
                                           std::size_t width, std::int64_t first,
                                           std::int64_t last, std::int64_t* TCBOOST_RESTRICT most,
                                           std::int64_t* TCBOOST_RESTRICT row) {
    for (std::int64_t j = first; j < last; ++j)
        for (std::size_t k = 0; k < width; ++k) {
            const std::int64_t value = A[std::size_t(j) * width + k];
            const std::int64_t size = value < 0 ? -value : value;
            row[k] = size > most[k] ? j : row[k];
            most[k] = size > most[k] ? size : most[k];
        }
}

// For each column k of A (rows x width) the rows with the largest |A[j, k]|, one for each part
// between `starts`: of the best parts, the best first, each with A[j, k]. The first row, and the
// first part, on a tie. For 6,120 stumps and 31 columns it takes 60 microseconds, where absolute
// values and argmax of NumPy took 240 for the best part alone.
inline std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> largest_of_parts(
    const std::int64_t* A, std::size_t width, const std::int64_t* starts, std::size_t parts,
    std::size_t limit) {
    std::vector<std::int64_t> most(parts * width, -1), row(parts * width);
    for (std::size_t d = 0; d < parts; ++d)
        largest_by_column(A, width, starts[d], starts[d + 1], most.data() + d * width,
                          row.data() + d * width);
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> found(std::min(limit, parts));
    std::vector<std::size_t> order(parts);
    for (std::size_t k = 0; k < width; ++k) {
        for (std::size_t d = 0; d < parts; ++d) order[d] = d * width + k;
        std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(found.size()), order.end(),
                          [&](std::size_t a, std::size_t b) {
                              return most[a] > most[b] || (most[a] == most[b] && a < b);
                          });
        for (std::size_t rank = 0; rank < found.size(); ++rank) {
            const std::int64_t j = row[order[rank]];
            found[rank].emplace_back(j, A[std::size_t(j) * width + k]);
        }
    }
    return found;
}

}  // namespace tcboost
