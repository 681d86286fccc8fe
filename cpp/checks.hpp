// Arrays of rows and of stumps, and whether they fit together.
#pragma once

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <tuple>

#include "arrays.hpp"
#include "histogram.hpp"

using Features = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;  // in any layout
template <class Bin>
using Bins = nb::ndarray<const Bin, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Weights = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;
using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Changed = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using GroupArrays = std::tuple<Offsets, Offsets, Places, Offsets>;
// Of each candidate its feature, its cut and where missing values go.
using Candidates = std::tuple<Offsets, Offsets, Flags>;

// All of n numbers are below the limit, and none is negative.
template <class Index>
void check_below(const Index* at, std::size_t n, std::size_t limit, const char* message) {
    if (std::any_of(at, at + n, [=](Index index) { return std::size_t(index) >= limit; }))
        throw std::invalid_argument(message);
}

inline tcboost::Groups checked_groups(std::size_t n_groups, const GroupArrays& arrays) {
    const auto& [first, group, place, offset] = arrays;
    const std::size_t n_features = group.shape(0);
    if (first.shape(0) != n_groups + 1 || offset.shape(0) != n_features + 1)
        throw std::invalid_argument("first and offset need one more entry than there are");
    check_below(group.data(), n_features, n_groups, "there is no such group");
    std::int64_t n_places = 0;
    for (std::size_t d = 0; d < n_features; ++d)
        n_places += first(group(d) + 1) - first(group(d));
    if (std::int64_t(place.shape(0)) != n_places)
        throw std::invalid_argument("place needs an entry for each feature and cell");
    return {n_groups, n_features, first.data(), group.data(), place.data(), offset.data()};
}

inline void check_parts(Offsets starts, std::size_t n) {
    if (starts.size() < 2 || starts(0) != 0 || std::size_t(starts(starts.size() - 1)) != n ||
        !std::is_sorted(starts.data(), starts.data() + starts.size()))
        throw std::invalid_argument("starts must ascend from zero to the number of rows");
}
