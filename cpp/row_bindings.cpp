// Rows for Python: their margins, dual weights, and sums of these over cells.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "checks.hpp"
#include "histogram.hpp"
#include "looked_up.hpp"
#include "products.hpp"
#include "stumps.hpp"
#include "weights.hpp"

namespace {

using Code = nb::ndarray<const std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Call work(width, out) and return out: sums by feature and bin, and by class where there are
// classes and no code. K is the number of weights of a row.
template <class Bin, class Work>
Sums sums_of(Bins<Bin> cells, std::size_t n, std::size_t K, std::optional<Offsets> y,
             std::optional<Codes> M, const tcboost::Groups& groups, Work work) {
    const std::size_t classes = y && !M ? K + 1 : 0, width = classes ? classes : K;
    if (cells.shape(0) != n || (y && y->shape(0) != n))
        throw std::invalid_argument("cells, weights and classes differ in their rows");
    if (M && (!y || M->shape(1) != width))
        throw std::invalid_argument("a code needs classes, and one bit a weight");
    const std::size_t rows = static_cast<std::size_t>(groups.offset[groups.n_features]) + classes;
    return filled<std::int64_t>({rows, width}, [&](std::int64_t* out) { work(width, out); });
}

template <class Bin>
Sums prefix_sums(Bins<Bin> cells, Weights u, std::optional<Offsets> y, std::optional<Codes> M,
                 const GroupArrays& arrays, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = u.shape(0);
    return sums_of(cells, n, u.shape(1), y, M, groups, [&](std::size_t width, std::int64_t* out) {
        tcboost::prefix_sums(cells.data(), u.data(), y ? y->data() : nullptr,
                             M ? M->data() : nullptr, groups, n, width, n_threads, out);
    });
}

nb::tuple weights_found(const tcboost::DualIntegers& dual) {
    return nb::make_tuple(dual.top, dual.bits, dual.total, dual.least);
}

// Into u.
nb::tuple dual_integers(Matrix z, Reals weight,
                        nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> u,
                        int n_threads) {
    const std::size_t n = z.shape(0), width = z.shape(1);
    if (z.size() == 0 || weight.shape(0) != n || u.shape(0) != n || u.shape(1) != width)
        throw std::invalid_argument("z, weight and u differ in their shapes, or have no rows");
    tcboost::DualIntegers dual;
    {
        nb::gil_scoped_release release;
        dual = tcboost::dual_integers(z.data(), weight.data(), n, width, n_threads,
                                      tcboost::InMemory{u.data(), width});
    }
    return weights_found(dual);
}

template <class Bin>
nb::tuple weigh_and_sum(Matrix z, Reals weight, Bins<Bin> cells, Offsets y,
                        std::optional<Codes> M, const GroupArrays& arrays, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = z.shape(0);
    if (z.size() == 0 || weight.shape(0) != n)
        throw std::invalid_argument("z and weight differ in their shapes, or have no rows");
    tcboost::DualIntegers dual;
    Sums sums = sums_of(cells, n, z.shape(1), y, M, groups, [&](std::size_t width,
                                                                std::int64_t* out) {
        dual = tcboost::weigh_and_sum(cells.data(), z.data(), weight.data(), y.data(),
                                      M ? M->data() : nullptr, groups, n, width, n_threads, out);
    });
    return nb::make_tuple(sums, weights_found(dual));
}

// The feature of a stump, the last bin on its left, whether missing values go right; its sign.
using SignedStump = std::tuple<std::size_t, std::int64_t, bool, int>;

template <class Bin>
nb::tuple multiply_and_sum(Changed E, double coefficient, Code code, SignedStump stump,
                           Reals weight, int bits, Bins<Bin> cells, Offsets y,
                           const GroupArrays& arrays, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = y.shape(0), n_classes = code.shape(0);
    if (n == 0 || cells.shape(0) != n || weight.shape(0) != n)
        throw std::invalid_argument("cells, y and weight differ in their rows, or have none");
    if (n_classes < 3) throw std::invalid_argument("code must have three classes or more");
    if (E.ndim() != 2 || E.shape(0) != n || E.shape(1) != (n_classes + 3) / 4 * 4)
        throw std::invalid_argument("E must be rows x classes, in fours");
    const auto [feature, cut, missing_right, sign] = stump;
    if (feature >= groups.n_features) throw std::invalid_argument("there is no such feature");
    const auto n_cells = [&](std::size_t d) {
        return std::size_t(groups.first[groups.group[d] + 1] - groups.first[groups.group[d]]);
    };
    const std::int32_t* bins = groups.place;
    for (std::size_t d = 0; d < feature; ++d) bins += n_cells(d);
    const tcboost::StumpSigns<Bin> signs(&cells(0, groups.group[feature]), bins, n_cells(feature),
                                         cut, missing_right, std::int8_t(sign));
    const tcboost::Step<Bin> step{coefficient, code.data(), signs};
    tcboost::Multiplied found;
    Sums sums = sums_of(cells, n, n_classes - 1, y, std::nullopt, groups,
                        [&](std::size_t, std::int64_t* out) {
                            found = tcboost::multiply_and_sum(
                                E.data(), step, weight.data(), bits, cells.data(), y.data(), groups,
                                n, n_classes, n_threads, out);
                        });
    if (!found.fits) throw std::invalid_argument("y must be below the number of classes");
    return nb::make_tuple(sums, found.total, found.largest, found.error);
}

template <class Number>
using Outputs = nb::ndarray<const Number, nb::ndim<2>, nb::device::cpu>;

template <class Number>
auto pairwise_margins(Outputs<Number> outputs, Offsets y, int n_threads) {
    const std::size_t n = outputs.shape(0);
    if (y.shape(0) != n || outputs.shape(1) < 2)
        throw std::invalid_argument("outputs and y differ in their rows, or have one class");
    const std::size_t width = outputs.shape(1) - 1;
    return filled<Number>({n, width}, [&](Number* rho) {
        tcboost::pairwise_margins(outputs.data(), outputs.stride(0), outputs.stride(1), y.data(), n,
                                  width, n_threads, rho);
    });
}

auto pairwise_wrong(Matrix z, Offsets y, int n_threads) {
    const std::size_t n = z.shape(0);
    if (y.shape(0) != n) throw std::invalid_argument("z and y differ in their rows");
    return filled<bool>({n}, [&](bool* wrong) {
        tcboost::pairwise_wrong(z.data(), y.data(), n, z.shape(1), n_threads, wrong);
    });
}

// Scores by the cells of rows, checked.
template <class Bin>
tcboost::CellScores<Bin> cell_scores(Bins<Bin> cells, Offsets first, Offsets used, Matrix table,
                                     std::size_t width) {
    const std::size_t n_groups = cells.shape(1), stride = table.shape(1);
    if (first.shape(0) != n_groups + 1 || table.shape(0) != std::size_t(first(n_groups)))
        throw std::invalid_argument("table needs a row for each cell of each group");
    if (stride < width || stride % 4)
        throw std::invalid_argument("table needs a column a score, and in all a multiple of four");
    check_below(used.data(), used.size(), n_groups, "there is no such group");
    return {cells.data(), first.data(), used.data(), used.shape(0),
            table.data(), stride,       cells.shape(0)};
}

template <class Bin>
nb::tuple look_up_and_sum(Bins<Bin> cells, Offsets used, Matrix table, Offsets y, Codes M,
                          Reals weight, double top, int bits, double tie,
                          const GroupArrays& arrays, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = cells.shape(0), width = M.shape(1);
    if (n == 0 || y.shape(0) != n || weight.shape(0) != n)
        throw std::invalid_argument("cells, y and weight differ in their rows, or have none");
    if (width == 0) throw std::invalid_argument("the code has no bits");
    check_below(y.data(), y.size(), M.shape(0), "the code has no such class");
    const auto scores = cell_scores(cells, std::get<0>(arrays), used, table, width);
    tcboost::LookedUp found;
    Sums sums = sums_of(cells, n, width, y, M, groups, [&](std::size_t, std::int64_t* out) {
        found = tcboost::look_up_and_sum(cells.data(), scores, y.data(), M.data(), M.shape(0),
                                         weight.data(), top, bits, tie, groups, n, width,
                                         n_threads, out);
    });
    return nb::make_tuple(sums, found.total, found.least, found.error);
}

}  // namespace

void bind_rows(nb::module_& m) {
    const auto def = [&m](auto bin) {
        using Bin = decltype(bin);
        m.def("prefix_sums", &prefix_sums<Bin>, "cells"_a.noconvert(), "u"_a.noconvert(),
              "y"_a.noconvert().none(), "M"_a.noconvert().none(), "groups"_a.noconvert(),
              "n_threads"_a,
              "Sums of V over the rows, by feature and cumulated over its bins, and by class.");
        m.def("weigh_and_sum", &weigh_and_sum<Bin>, "z"_a.noconvert(), "weight"_a.noconvert(),
              "cells"_a.noconvert(), "y"_a.noconvert(), "M"_a.noconvert().none(),
              "groups"_a.noconvert(), "n_threads"_a,
              "`prefix_sums` of the dual weights at margins z, and what `dual_integers` tells.");
        m.def("multiply_and_sum", &multiply_and_sum<Bin>, "E"_a.noconvert(),
              "coefficient"_a, "code"_a.noconvert(), "stump"_a, "weight"_a.noconvert(), "bits"_a,
              "cells"_a.noconvert(), "y"_a.noconvert(), "groups"_a.noconvert(), "n_threads"_a,
              "Multiply E, then `prefix_sums` of it; its sum, the largest, weight of wrong rows.");
        m.def("look_up_and_sum", &look_up_and_sum<Bin>, "cells"_a.noconvert(), "used"_a.noconvert(),
              "table"_a.noconvert(), "y"_a.noconvert(), "M"_a.noconvert(), "weight"_a.noconvert(),
              "top"_a, "bits"_a, "tie"_a, "groups"_a.noconvert(), "n_threads"_a,
              "`prefix_sums` of weights exp(-z - top) at codeword margins z of sums of table rows; "
              "their sum, the least z, weight of wrong rows.");
    };
    def(std::uint8_t{}), def(std::uint16_t{}), def(std::uint32_t{});
    m.def("dual_integers", &dual_integers, "z"_a.noconvert(), "weight"_a.noconvert(),
          "u"_a.noconvert(), "n_threads"_a,
          "Dual weights in integers, into u; the top, the bits, the sum of u, the least z.");
    const auto margins = [&m](auto number) {
        m.def("pairwise_margins", &pairwise_margins<decltype(number)>, "outputs"_a.noconvert(),
              "y"_a.noconvert(), "n_threads"_a, "Margins of outputs.");
    };
    margins(std::int8_t{}), margins(double{});
    m.def("pairwise_wrong", &pairwise_wrong, "z"_a.noconvert(), "y"_a.noconvert(), "n_threads"_a,
          "Which rows are misclassified.");
}
