// Features for Python, on their way to cells.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "checks.hpp"
#include "features.hpp"

namespace {

template <class Number>
using Numbers = nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

tcboost::Table table_of(const Features& X) {
    return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

auto hash_rows(Features X, int n_threads) {
    const std::size_t n = X.shape(0);
    return filled<std::uint64_t>({2, n}, [&](std::uint64_t* out) {
        tcboost::hash_rows(table_of(X), n_threads, out, out + n);
    });
}

void chosen_values(Features X, Offsets rows, std::size_t first, Changed out, int n_threads) {
    const std::size_t n = rows.size();
    if (out.ndim() != 2 || out.shape(1) != n)
        throw std::invalid_argument("out must be features x rows");
    if (first > X.shape(1) || out.shape(0) > X.shape(1) - first)
        throw std::invalid_argument("there is no such feature");
    check_below(rows.data(), n, X.shape(0), "there is no such row");
    nb::gil_scoped_release release;
    tcboost::chosen_values(table_of(X), rows.data(), n, first, out.shape(0), n_threads, out.data());
}

template <class Bin>
nb::object bins_in(Reals cuts, Reals x) {
    return nb::cast(filled<Bin>({x.size()}, [&](Bin* out) {
        tcboost::bins_of(cuts.data(), cuts.size(), x.data(), x.size(), out);
    }));
}

// In the smallest type that holds all of them.
nb::object bins_of(Reals cuts, Reals x) {
    const std::size_t last = cuts.size() + 1;
    if (last <= UINT8_MAX) return bins_in<std::uint8_t>(cuts, x);
    if (last <= UINT16_MAX) return bins_in<std::uint16_t>(cuts, x);
    return bins_in<std::uint32_t>(cuts, x);
}

template <class Cell, class Bin>
std::optional<std::pair<nb::object, nb::object>> join_cells(Numbers<Cell> cells,
                                                            std::size_t n_cells, Numbers<Bin> bins,
                                                            std::size_t n_bins, std::size_t most,
                                                            int n_threads) {
    const std::size_t n = cells.size();
    if (bins.size() != n) throw std::invalid_argument("cells and bins differ in their rows");
    if (n_cells > INT32_MAX || n_bins > INT32_MAX || n_cells * n_bins > INT32_MAX)
        throw std::invalid_argument("there are too many pairs of a cell and a bin");
    tcboost::Joined joined;
    auto number = filled<std::int32_t>({n}, [&](std::int32_t* out) {
        joined = tcboost::join_cells(cells.data(), n_cells, bins.data(), n_bins, n, most, n_threads,
                                     out);
    });
    if (!joined.fits) throw std::invalid_argument("there is no such cell or bin");
    if (joined.pairs.size() > most) return std::nullopt;
    return std::pair(nb::cast(number), as_array(std::move(joined.pairs)));
}

}  // namespace

void bind_features(nb::module_& m) {
    m.def("hash_rows", &hash_rows, "X"_a.noconvert(), "n_threads"_a,
          "Two hashes of each row; all kinds of NaN are one, and so are the zeros.");
    m.def("chosen_values", &chosen_values, "X"_a.noconvert(), "rows"_a.noconvert(), "first"_a,
          "out"_a.noconvert(), "n_threads"_a,
          "The features of rows from `first` on, as many as fit, into out, feature by feature; with "
          "one NaN and one zero.");
    m.def("bins_of", &bins_of, "cuts"_a.noconvert(), "x"_a.noconvert(),
          "1 + the number of cuts below each value, 0 for NaN, in the smallest type.");
    const auto def = [&m](auto cell, auto bin) {
        m.def("join_cells", &join_cells<decltype(cell), decltype(bin)>, "cells"_a.noconvert(),
              "n_cells"_a, "bins"_a.noconvert(), "n_bins"_a, "most"_a, "n_threads"_a,
              "Numbers of the pairs that occur, in order, for each row, and the pairs as cell "
              "n_bins + bin; None if there are more than `most`.");
    };
    // Those of groups, and of merged rows.
    def(std::uint8_t{}, std::uint8_t{}), def(std::uint8_t{}, std::uint16_t{});
    def(std::int32_t{}, std::uint8_t{});
}
