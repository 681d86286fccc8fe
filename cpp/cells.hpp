// Rows as cells of features, and the arithmetic of sums over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace tcboost {

// The rules of an ordered feature are cuts: the values above are on the right, and missing ones on
// either side, or alone against all values. Those of levels are one against the rest.
// Bits are several features of one cut each, taken together: a cell is a number that has a bit for
// each of them, which is set on the right of its cut.
enum class Kind { ordered, levels, bits };

struct CellFeature {
    Kind kind;
    std::size_t n_cells;         // ordered: the first is that of missing values
    bool missing;                // ordered: whether there are missing values and others
    const std::uint16_t* cells;  // of the n rows, or of those that are not in the main cell
    const std::uint32_t* rows;   // which these are, ascending; null if all rows are there
    std::size_t n;
    std::size_t main;  // the cell of all other rows

    std::size_t n_cuts() const { return n_cells > 2 ? n_cells - 2 : 0; }
    std::size_t n_rules() const {
        if (kind == Kind::levels) return n_cells > 1 ? n_cells : 0;
        return missing ? 2 * n_cuts() + 1 : n_cuts();
    }
};

// A rule of a feature: its cut, the first with the number 0, or its level; and whether missing values
// are on the right of the cut. Those that are alone there have the number behind the last cut.
struct RulePlace {
    std::size_t place;
    bool missing_right;
};

inline RulePlace rule_place(const CellFeature& feature, std::size_t rule) {
    if (feature.kind == Kind::levels || !feature.missing) return {rule, false};
    const bool alone = rule == 2 * feature.n_cuts();
    return {rule / 2, alone || rule % 2 == 1};
}

// Features of one cut each that a pass handles together.
struct BitGroup {
    std::vector<std::size_t> features;
    std::vector<std::uint16_t> cells;
    CellFeature joint;
};

struct LabelledCells {
    std::vector<CellFeature> features;
    std::vector<BitGroup> groups;
    std::vector<std::size_t> group, bit;  // of each feature; the number of groups if it is in none
    std::vector<std::size_t> first;  // rule of each feature, and the number of all
    const std::int32_t* y;
    const double* weight;  // they sum to one
    std::size_t n, n_classes, stride;
    double scale;               // sums are integers in units of 1 / scale
    std::vector<double> floor;  // of the entries of a row of probabilities

    // What an edge can be off by in length: of each row its weight and weighted probabilities are
    // rounded to integers.
    double rounding() const {
        const auto rows = static_cast<double>(n), C = static_cast<double>(n_classes);
        return rows * (1.0 + std::sqrt(C)) / scale;
    }
};

// Lanes of a row: a multiple of what a register holds. Those behind the last class hold zeros.
inline std::size_t stride_of(std::size_t n_classes) {
    return n_classes == 2 ? 2 : (n_classes + 3) / 4 * 4;
}

// Features of one cut and no missing values, as many together as keep their cells few beside the
// rows: one pass and one small problem then serve for all of them.
inline void make_groups(LabelledCells& data) {
    std::size_t most = 1;
    while (most < 8 && (most + 1) << (most + 1) <= data.n / 8) ++most;
    std::vector<std::size_t> single;
    for (std::size_t j = 0; j < data.features.size(); ++j) {
        const CellFeature& f = data.features[j];
        if (f.kind == Kind::ordered && !f.missing && f.n_cells == 3 && !f.rows) single.push_back(j);
    }
    if (most > 1 && single.size() > 1)
        for (std::size_t first = 0; first < single.size(); first += most) {
            const std::size_t last = std::min(single.size(), first + most);
            const auto from = single.begin() + std::ptrdiff_t(first);
            const auto to = single.begin() + std::ptrdiff_t(last);
            BitGroup group{{from, to}, std::vector<std::uint16_t>(data.n, 0), {}};
            for (std::size_t bit = 0; bit < last - first; ++bit) {
                const std::uint16_t* cells = data.features[single[first + bit]].cells;
                for (std::size_t i = 0; i < data.n; ++i)
                    group.cells[i] |= static_cast<std::uint16_t>((cells[i] == 2) << bit);
            }
            data.groups.push_back(std::move(group));
        }
    data.group.assign(data.features.size(), data.groups.size());
    data.bit.assign(data.features.size(), 0);
    for (std::size_t g = 0; g < data.groups.size(); ++g) {
        BitGroup& group = data.groups[g];
        const std::size_t n_cells = std::size_t(1) << group.features.size();
        group.joint = {Kind::bits, n_cells, false, group.cells.data(), nullptr, data.n, 0};
        for (std::size_t bit = 0; bit < group.features.size(); ++bit)
            data.group[group.features[bit]] = g, data.bit[group.features[bit]] = bit;
    }
}

inline double product(const double* x, const double* y, std::size_t n) {
    double sum = 0.0;
    for (std::size_t c = 0; c < n; ++c) sum += x[c] * y[c];
    return sum;
}

struct Penalty {
    double penalty, ridge, intercept;  // r, ridge and rho

    // What a model of so many rules and classes costs.
    double of(const double* b, const double* v, std::size_t T, std::size_t C) const {
        double length = 0.0;
        for (std::size_t t = 0; t < T; ++t) length += std::sqrt(product(v + t * C, v + t * C, C));
        return penalty * length + (ridge * product(v, v, T * C) + intercept * product(b, b, C)) / 2.0;
    }
};

// Call work(stride), with a constant where it is small.
template <class Work>
TCBOOST_INLINE void with_stride(std::size_t stride, Work work) {
    switch (stride) {
        case 2: return work(std::integral_constant<std::size_t, 2>());
        case 4: return work(std::integral_constant<std::size_t, 4>());
        case 8: return work(std::integral_constant<std::size_t, 8>());
        case 12: return work(std::integral_constant<std::size_t, 12>());
        default: return work(stride);
    }
}

// Entries of a row that are handled together.
template <class Stride>
constexpr std::size_t lanes_of(Stride) {
    if constexpr (std::is_same_v<Stride, std::integral_constant<std::size_t, 2>>) return 2;
    return 4;
}

// The nearest integer to |x| < 2^51.
TCBOOST_INLINE std::int64_t nearest(double x) {
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
    const double moved = x + shift;
    std::int64_t bits, zero;
    std::memcpy(&bits, &moved, sizeof bits);
    std::memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

// e^x, to the last bit but one; below e^-700 it stays there. Its own, so that loops of it are
// vectorised, and the bits do not depend on a library.
TCBOOST_INLINE double exponential(double x) {
    x = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
    const std::int64_t k = nearest(x * 1.4426950408889634);
    const double shift = 6755399441055744.0, of_two = (x * 1.4426950408889634 + shift) - shift;
    const double r = (x - of_two * 0.693147180369123816490) - of_two * 1.90821492927058770002e-10;
    double sum = 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0, sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0, sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0, sum = sum * r + 1.0 / 5040.0, sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0, sum = sum * r + 1.0 / 24.0, sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5, sum = sum * r + 1.0, sum = sum * r + 1.0;
    const std::int64_t exponent = (k + 1023) << 52;
    double power;
    std::memcpy(&power, &exponent, sizeof power);
    return sum * power;
}

// No probability is below, so that each can grow again.
constexpr double least_probability = 1e-290;

// Rows a task takes, whatever the number of threads: sums of doubles are made by tasks.
constexpr std::size_t rows_of_task = 2048;

}  // namespace tcboost
