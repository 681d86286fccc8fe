// Sums of integer dual weights over rows, by feature and bin.
//
// Integers make the sums exact, so they do not depend on the order of the rows, on how the
// rows are cut into blocks, or on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine.hpp"

namespace tcboost {

// Features with few bins are counted together, as groups whose cells are the combinations of
// bins that occur: covertype's 54 features make 11 groups, one of them of 44 binary features.
struct Groups {
    std::size_t n_groups, n_features;
    const std::int64_t* first;   // where the cells of a group start; n_groups + 1 entries
    const std::int64_t* group;   // of each feature
    const std::int32_t* place;   // feature by feature, the bin of each cell of its group
    const std::int64_t* offset;  // where the bins of a feature start; n_features + 1 entries
    std::size_t n_wanted;
    const std::int64_t* wanted;  // the groups to count; the sums of the others are zero
};

// Integers from the start of a cache line on: rows of eight that cross lines cost half as much
// again in `add_rows`, and where one cell has most of the rows three times as much.
struct alignas(64) Line {
    std::int64_t at[8];
};

// Room for so many, and never none: there is always a first line to point to.
inline std::vector<Line> lines(std::size_t size) { return std::vector<Line>(size / 8 + 1); }

// Add the rows of V (rows x stride) to their cells, in the wanted groups from `begin` to `end`.
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
        const std::int64_t g = groups.wanted[at], h = two ? groups.wanted[at + 1] : g;
        std::int64_t* of_group = sums + static_cast<std::size_t>(groups.first[g]) * stride;
        std::int64_t* of_next = sums + static_cast<std::size_t>(groups.first[h]) * stride;
        const Bin* cell = cells + static_cast<std::size_t>(g) * n;
        const Bin* next = cells + static_cast<std::size_t>(h) * n;
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

// out[offset[d] + b, k] = sum of V[i, k] over the rows with 1 <= bin of (i, d) <= b, for b >= 1;
// row offset[d] holds the sum over the missing values, bin 0.
//
// cells is n x n_groups by columns, u is n x K by rows, out is offset[n_features] x width. V is
// u, or with the classes y the adjoint of margins: with a code M (`Codeword.adjoint`) M[y_i] u[i],
// else (`Pairwise.adjoint`, width = K + 1) V[i, y_i] is the sum of u[i], and the other classes
// have -u[i]. It is made for a few rows at a time and stays in the first-level cache.
template <class Bin>
void prefix_sums(const Bin* cells, const std::int64_t* u, const std::int64_t* y,
                 const std::int8_t* M, const Groups& groups, std::size_t n, std::size_t width,
                 int n_threads, std::int64_t* out) {
    constexpr std::size_t chunk = 512;
    const std::size_t stride = width <= 2 ? width : (width + 3) / 4 * 4;
    const std::size_t n_cells = static_cast<std::size_t>(groups.first[groups.n_groups]);
    const std::size_t work = n * groups.n_wanted;
    // Below this much work a thread costs more than it saves.
    const std::size_t threads = work * width < 100000 ? 1 : std::max(n_threads, 1);
    // Each slice of the rows has sums of its own, as long as these are few; the other threads
    // share the groups of a slice.
    const std::size_t slices = std::min(threads, 1 + work / (4 * n_cells + 1));
    const std::size_t parts = std::min(groups.n_wanted, (threads + slices - 1) / slices);
    const auto add = stride == 1   ? add_rows<1, Bin>
                     : stride == 2 ? add_rows<2, Bin>
                     : stride == 4 ? add_rows<4, Bin>
                     : stride == 8 ? add_rows<8, Bin>
                                   : add_rows<0, Bin>;
    // A slice's sums start a line of their own.
    const std::size_t per_slice = (n_cells * stride + 7) / 8 * 8;
    std::vector<Line> memory = lines(slices * per_slice);
    std::int64_t* sums = memory.data()->at;
    parallel_for(slices * parts, n_threads, [&](std::size_t task) {
        const std::size_t slice = task / parts, part = task % parts;
        const std::size_t begin = groups.n_wanted * part / parts;
        const std::size_t end = groups.n_wanted * (part + 1) / parts;
        std::vector<Line> rows_of_V = lines(chunk * stride);
        std::int64_t* V = rows_of_V.data()->at;
        for (std::size_t i = n * slice / slices, last = n * (slice + 1) / slices; i < last;) {
            const std::size_t rows = std::min(chunk, last - i);
            with_constant(width - (y && !M ? 1 : 0), [=](auto w) {
                for (std::size_t r = 0; r < rows; ++r) {
                    std::int64_t* v = V + r * stride;
                    const std::int64_t* from = u + (i + r) * w;
                    if (!y) {
                        std::copy(from, from + w, v);
                        continue;
                    }
                    const std::size_t own = static_cast<std::size_t>(y[i + r]);
                    if (M) {
                        for (std::size_t k = 0; k < w; ++k) v[k] = M[own * w + k] * from[k];
                        continue;
                    }
                    std::int64_t total = 0;
                    for (std::size_t k = 0; k < w; ++k) {
                        total += from[k];
                        v[k + (k >= own)] = -from[k];
                    }
                    v[own] = total;
                }
            });
            add(cells + i, n, V, rows, stride, groups, begin, end, sums + slice * per_slice);
            i += rows;
        }
    });
    for (std::size_t slice = 1; slice < slices; ++slice)
        for (std::size_t j = 0; j < per_slice; ++j) sums[j] += sums[slice * per_slice + j];
    const std::int32_t* place = groups.place;
    std::fill(out, out + static_cast<std::size_t>(groups.offset[groups.n_features]) * width, 0);
    for (std::size_t d = 0; d < groups.n_features; ++d) {
        const std::int64_t* of_group = groups.first + groups.group[d];
        std::int64_t* of_bins = out + static_cast<std::size_t>(groups.offset[d]) * width;
        for (std::int64_t c = of_group[0]; c < of_group[1]; ++c, ++place)
            for (std::size_t k = 0; k < width; ++k)
                of_bins[static_cast<std::size_t>(*place) * width + k] +=
                    sums[static_cast<std::size_t>(c) * stride + k];
        const auto n_bins = static_cast<std::size_t>(groups.offset[d + 1] - groups.offset[d]);
        for (std::size_t j = 2 * width; j < n_bins * width; ++j) of_bins[j] += of_bins[j - width];
    }
}

}  // namespace tcboost
