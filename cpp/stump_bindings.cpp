// Stumps for Python: what they say of rows, their edges, and the best of them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "stumps.hpp"
#include "tables.hpp"

namespace {

// Some candidates, with their signs.
using Signed = std::vector<std::pair<std::size_t, int>>;

template <class Bin>
auto stump_signs(Bins<Bin> cells, Offsets group, Places place, Offsets start,
                 const Candidates& candidates, const Signed& stumps) {
    const auto& [feature, cut, missing_right] = candidates;
    const std::size_t n = cells.shape(0), D = group.shape(0), all = feature.shape(0);
    if (start.shape(0) != D + 1 || cut.shape(0) != all || missing_right.shape(0) != all)
        throw std::invalid_argument("arrays of features, or of candidates, differ in their sizes");
    std::vector<tcboost::StumpSigns<Bin>> signs;
    for (const auto& [j, sign] : stumps) {
        if (j >= all) throw std::invalid_argument("there is no such candidate");
        const auto d = std::size_t(feature(j));
        if (d >= D || std::size_t(group(d)) >= cells.shape(1) || start(d) < 0 ||
            start(d + 1) < start(d) || std::size_t(start(d + 1)) > place.shape(0))
            throw std::invalid_argument("there is no such feature");
        signs.emplace_back(&cells(0, group(d)), place.data() + start(d), start(d + 1) - start(d),
                           cut(j), missing_right(j), std::int8_t(sign));
    }
    return filled<std::int8_t>({n, signs.size()},
                               [&](std::int8_t* out) { tcboost::stump_signs(signs, n, out); });
}

Sums stump_edges(Weights sums, Offsets left, Offsets missing,
                 std::pair<std::size_t, std::size_t> total) {
    const std::size_t n = left.shape(0), width = sums.shape(1);
    if (missing.shape(0) != n)
        throw std::invalid_argument("left and missing differ in their shapes");
    const auto no_row = [&](std::int64_t row) { return row >= std::int64_t(sums.shape(0)); };
    if (std::max(total.first, total.second) >= sums.shape(0) ||
        std::any_of(left.data(), left.data() + n, no_row) ||
        std::any_of(missing.data(), missing.data() + n, no_row))
        throw std::invalid_argument("there is no such row of sums");
    return filled<std::int64_t>({n, width}, [&](std::int64_t* A) {
        tcboost::stump_edges(sums.data(), width, left.data(), missing.data(), n, total, A);
    });
}

Sums column_edges(Weights A, Offsets places, Offsets signs) {
    const std::size_t width = A.shape(1), t = width ? signs.size() / width : 0;
    const std::size_t n_stumps = places.size() == t ? 1 : width;
    if (signs.size() != t * width || places.size() != t * n_stumps)
        throw std::invalid_argument("columns need a sign for each column of A, and as many places "
                                    "or one");
    check_below(places.data(), places.size(), A.shape(0), "there is no such row");
    return filled<std::int64_t>({t, n_stumps}, [&](std::int64_t* out) {
        tcboost::column_edges(A.data(), width, places.data(), signs.data(), t, n_stumps, out);
    });
}

auto largest(Weights A, std::optional<Codes> codes) {
    if (A.shape(0) == 0 || (codes && codes->shape(0) != A.shape(1)))
        throw std::invalid_argument("A has no rows, or not one column for each row of the codes");
    return tcboost::largest(A.data(), A.shape(0), A.shape(1), codes ? codes->data() : nullptr,
                            codes ? codes->shape(1) : 0);
}

auto largest_of_parts(Weights A, Offsets starts, std::size_t limit) {
    check_parts(starts, A.shape(0));
    if (A.shape(0) == 0) throw std::invalid_argument("A has no rows");
    return tcboost::largest_of_parts(A.data(), A.shape(1), starts.data(), starts.size() - 1, limit);
}

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::object table_scores(Features X, Offsets feature, Offsets start, Reals cuts, Table table,
                        Reals base, std::size_t width, bool best, int n_threads) {
    const std::size_t n = X.shape(0), n_used = feature.shape(0);
    if (start.shape(0) != n_used + 1 || start(0) != 0 ||
        !std::is_sorted(start.data(), start.data() + n_used + 1) ||
        std::size_t(start(n_used)) != cuts.shape(0))
        throw std::invalid_argument("start must ascend from zero to the number of cuts");
    if (table.shape(0) != cuts.shape(0) + 2 * n_used || base.shape(0) % 4 ||
        table.shape(1) != base.shape(0) || width > base.shape(0))
        throw std::invalid_argument("table needs two rows a feature more than there are cuts");
    check_below(feature.data(), n_used, X.shape(1), "X has no such feature");
    const tcboost::StepTables model{n_used,       feature.data(), start.data(), cuts.data(),
                                    table.data(), base.data(),    base.shape(0)};
    auto run = [&](double* scores, std::int64_t* classes) {
        tcboost::table_scores(X.data(), X.stride(0), X.stride(1), n, model, width, n_threads,
                              scores, classes);
    };
    if (best)
        return nb::cast(filled<std::int64_t>({n}, [&](std::int64_t* out) { run(nullptr, out); }));
    return nb::cast(filled<double>({n, width}, [&](double* out) { run(out, nullptr); }));
}

}  // namespace

void bind_stumps(nb::module_& m) {
    const auto def = [&m](auto bin) {
        using Bin = decltype(bin);
        m.def("stump_signs", &stump_signs<Bin>, "cells"_a.noconvert(), "group"_a.noconvert(),
              "place"_a.noconvert(), "start"_a.noconvert(), "candidates"_a.noconvert(), "stumps"_a,
              "What stumps say of each row, side by side.");
    };
    def(std::uint8_t{}), def(std::uint16_t{}), def(std::uint32_t{});
    m.def("stump_edges", &stump_edges, "sums"_a.noconvert(), "left"_a.noconvert(),
          "missing"_a.noconvert(), "total"_a,
          "Edges of stumps with the sign +1, from `prefix_sums`.");
    m.def("column_edges", &column_edges, "A"_a.noconvert(), "places"_a.noconvert(),
          "signs"_a.noconvert(),
          "What each stump of columns, or with a code each column, adds to an edge.");
    m.def("largest", &largest, "A"_a.noconvert(), "codes"_a.noconvert().none(),
          "The row of A of the largest edge for each code, or for the best of all, and its edge.");
    m.def("largest_of_parts", &largest_of_parts, "A"_a.noconvert(), "starts"_a.noconvert(), "limit"_a,
          "For each column the rows of A of the largest edges, one a part, up to a limit.");
    m.def("table_scores", &table_scores, "X"_a.noconvert(), "feature"_a.noconvert(),
          "start"_a.noconvert(), "cuts"_a.noconvert(), "table"_a.noconvert(), "base"_a.noconvert(),
          "width"_a, "best"_a, "n_threads"_a,
          "Scores of the rows of X, or the best of them, from one table a feature.");
}
