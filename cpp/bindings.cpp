// The kernels for Python: shapes are checked here, the work is done without the GIL.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <link.h>
#endif

#include "arrays.hpp"
#include "descent.hpp"
#include "draft.hpp"
#include "histogram.hpp"
#include "looked_up.hpp"
#include "products.hpp"
#include "stumps.hpp"
#include "tables.hpp"
#include "weights.hpp"

template <class Bin>
using Bins = nb::ndarray<const Bin, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Weights = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;

using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Code = nb::ndarray<const std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using GroupArrays = std::tuple<Offsets, Offsets, Places, Offsets, Offsets>;

tcboost::Groups checked_groups(std::size_t n_groups, const GroupArrays& arrays) {
    const auto& [first, group, place, offset, wanted] = arrays;
    const std::size_t n_features = group.shape(0);
    if (first.shape(0) != n_groups + 1 || offset.shape(0) != n_features + 1)
        throw std::invalid_argument("first and offset need one more entry than there are");
    const auto no_group = [&](std::int64_t g) { return g < 0 || std::size_t(g) >= n_groups; };
    if (std::any_of(wanted.data(), wanted.data() + wanted.size(), no_group))
        throw std::invalid_argument("there is no such group");
    std::int64_t n_places = 0;
    for (std::size_t d = 0; d < n_features; ++d) {
        if (no_group(group(d))) throw std::invalid_argument("there is no such group");
        n_places += first(group(d) + 1) - first(group(d));
    }
    if (std::int64_t(place.shape(0)) != n_places)
        throw std::invalid_argument("place needs an entry for each feature and cell");
    return {n_groups,     n_features,    first.data(),  group.data(),
            place.data(), offset.data(), wanted.size(), wanted.data()};
}

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

using Signs = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Changed = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

// Rows of descent, checked.
tcboost::ScoredRows scored_rows(Signs H, Offsets start, Reals weight, Changed F, bool exponential,
                                int n_threads) {
    if (start.shape(0) < 3) throw std::invalid_argument("start needs two classes or more");
    const std::size_t n = H.shape(0), n_classes = start.shape(0) - 1;
    if (start(0) != 0 || !std::is_sorted(start.data(), start.data() + n_classes + 1))
        throw std::invalid_argument("start must ascend from zero");
    if (n == 0 || weight.shape(0) != n || std::size_t(start(n_classes)) != n)
        throw std::invalid_argument("H, start and weight differ in their rows, or have none");
    if (F.ndim() != 2 || F.shape(0) != n_classes || F.shape(1) != n)
        throw std::invalid_argument("F must be classes x rows");
    return {n, n_classes, start.data(), weight.data(), exponential, n_threads};
}

std::array<double, 4> descend(Signs H, std::optional<Codes> codes, Offsets start, Reals weight,
                              Changed W, Changed F, std::optional<Changed> linear, double theta,
                              double price, double ridge, double free_ridge, double tol,
                              int max_sweeps, bool exponential, int n_threads) {
    const auto rows = scored_rows(H, start, weight, F, exponential, n_threads);
    const std::size_t t = H.shape(1), n_classes = rows.n_classes;
    if (W.ndim() != (codes ? 1 : 2) || W.shape(0) != t || (!codes && W.shape(1) != n_classes))
        throw std::invalid_argument("W must be columns x classes, or columns with codes");
    if (codes && (codes->shape(0) != t || codes->shape(1) != n_classes))
        throw std::invalid_argument("codes must be columns x classes");
    if (linear && linear->size() != W.size())
        throw std::invalid_argument("linear needs the columns of W");
    if (!(theta >= 0 && price >= 0 && ridge >= 0 && free_ridge >= 0 && max_sweeps >= 0))
        throw std::invalid_argument("theta, price, ridges and max_sweeps must not be negative");
    const double* extra = linear ? linear->data() : nullptr;
    nb::gil_scoped_release release;
    if (codes)
        return tcboost::descend(rows, H.data(), t,
                                tcboost::CodeSteps(W.data(), codes->data(), n_classes, extra),
                                F.data(), theta, price, tol, max_sweeps);
    return tcboost::descend(rows, H.data(), t,
                            tcboost::VectorSteps(W.data(), n_classes, ridge, free_ridge, extra),
                            F.data(), theta, price, tol, max_sweeps);
}

auto score_gradients(Signs H, Offsets start, Reals weight, Changed F, bool exponential,
                     int n_threads) {
    const auto rows = scored_rows(H, start, weight, F, exponential, n_threads);
    const std::size_t t = H.shape(1);
    return filled<double>({t, rows.n_classes}, [&](double* out) {
        tcboost::score_gradients(rows, H.data(), t, F.data(), out);
    });
}

nb::tuple stump_tables(const std::vector<std::int64_t>& feature,
                       const std::vector<double>& threshold,
                       const std::vector<std::int64_t>& sign,
                       const std::vector<bool>& missing_right, Weights v) {
    const std::size_t t = feature.size();
    if (threshold.size() != t || sign.size() != t || missing_right.size() != t || v.shape(0) != t)
        throw std::invalid_argument("a stump has a feature, a threshold, a sign, a side and a v");
    auto held = tcboost::stump_tables(feature, threshold, sign, missing_right, v.data(),
                                      v.shape(1));
    return nb::make_tuple(as_array(std::move(held.feature)), as_array(std::move(held.start)),
                          as_array(std::move(held.cuts)), as_array(std::move(held.table)));
}

using Features = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

nb::object stump_scores(Features X, Offsets feature, Offsets start, Reals cuts, Weights table,
                        double unit, std::size_t width, bool best, int n_threads) {
    const std::size_t n = X.shape(0), n_used = feature.shape(0);
    if (start.shape(0) != n_used + 1 || start(0) != 0 ||
        !std::is_sorted(start.data(), start.data() + n_used + 1) ||
        std::size_t(start(n_used)) != cuts.shape(0))
        throw std::invalid_argument("start must ascend from zero to the number of cuts");
    if (table.shape(0) != cuts.shape(0) + 2 * n_used || table.shape(1) % 4 ||
        width > table.shape(1))
        throw std::invalid_argument("table needs two rows a feature more than there are cuts");
    for (std::size_t u = 0; u < n_used; ++u)
        if (feature(u) < 0 || std::size_t(feature(u)) >= X.shape(1))
            throw std::invalid_argument("X has no such feature");
    const tcboost::StumpTables model{n_used,       feature.data(), start.data(), cuts.data(),
                                     table.data(), table.shape(1), unit};
    auto run = [&](double* scores, std::int64_t* classes) {
        tcboost::stump_scores(X.data(), X.stride(0), X.stride(1), n, model, width, n_threads,
                              scores, classes);
    };
    if (best)
        return nb::cast(filled<std::int64_t>({n}, [&](std::int64_t* out) { run(nullptr, out); }));
    return nb::cast(filled<double>({n, width}, [&](double* out) { run(out, nullptr); }));
}

using Margins = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::tuple weights_found(const tcboost::DualIntegers& dual) {
    return nb::make_tuple(dual.loss, dual.bits, dual.total, dual.least);
}

// Of the log-loss or of the cross-entropy; into u.
nb::tuple dual_integers(Margins z, Reals weight, bool cross_entropy,
                        nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> u,
                        int n_threads) {
    const std::size_t n = z.shape(0), width = z.shape(1);
    if (z.size() == 0 || weight.shape(0) != n || u.shape(0) != n || u.shape(1) != width)
        throw std::invalid_argument("z, weight and u differ in their shapes, or have no rows");
    tcboost::DualIntegers dual;
    {
        nb::gil_scoped_release release;
        dual = tcboost::dual_integers(z.data(), weight.data(), cross_entropy, std::nan(""), n,
                                      width, n_threads, tcboost::InMemory{u.data(), width});
    }
    return weights_found(dual);
}

template <class Bin>
nb::tuple weigh_and_sum(Margins z, Reals weight, bool cross_entropy, double least, Bins<Bin> cells,
                        Offsets y, std::optional<Codes> M, const GroupArrays& arrays,
                        int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = z.shape(0);
    if (z.size() == 0 || weight.shape(0) != n)
        throw std::invalid_argument("z and weight differ in their shapes, or have no rows");
    tcboost::DualIntegers dual;
    Sums sums = sums_of(cells, n, z.shape(1), y, M, groups, [&](std::size_t width,
                                                                std::int64_t* out) {
        dual = tcboost::weigh_and_sum(cells.data(), z.data(), weight.data(), cross_entropy, least,
                                      y.data(), M ? M->data() : nullptr, groups, n, width,
                                      n_threads, out);
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

// Of each candidate its feature, its cut and where missing values go; and some, with their signs.
using Candidates = std::tuple<Offsets, Offsets, Flags>;
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
    const auto no_row = [&](std::int64_t j) { return j < 0 || std::size_t(j) >= A.shape(0); };
    if (std::any_of(places.data(), places.data() + places.size(), no_row))
        throw std::invalid_argument("there is no such row");
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

void check_parts(Offsets starts, std::size_t n) {
    if (starts.size() < 2 || starts(0) != 0 || std::size_t(starts(starts.size() - 1)) != n ||
        !std::is_sorted(starts.data(), starts.data() + starts.size()))
        throw std::invalid_argument("starts must ascend from zero to the number of rows");
}

auto largest_of_parts(Weights A, Offsets starts, std::size_t limit) {
    check_parts(starts, A.shape(0));
    if (A.shape(0) == 0) throw std::invalid_argument("A has no rows");
    return tcboost::largest_of_parts(A.data(), A.shape(1), starts.data(), starts.size() - 1, limit);
}

nb::tuple longest(Weights A, const std::vector<std::int64_t>& taken, Offsets starts,
                  std::size_t limit) {
    const std::size_t n = A.shape(0);
    check_parts(starts, n);
    std::vector<bool> out_of_use(n);
    for (std::int64_t j : taken) {
        if (j < 0 || std::size_t(j) >= n) throw std::invalid_argument("there is no such row");
        out_of_use[std::size_t(j)] = true;
    }
    tcboost::Vector lengths(n);
    auto found = tcboost::longest(A.data(), n, A.shape(1), out_of_use, starts.data(),
                                  starts.size() - 1, limit, lengths.data());
    return nb::make_tuple(as_array(std::move(lengths)), found);
}

// Cells and groups, where the bins of the cells of a feature start, all candidates, the rows of
// prefix sums that have their left sides and all rows, and where the candidates of a feature start.
template <class Bin>
using Stumps = std::tuple<Bins<Bin>, GroupArrays, Offsets, Candidates, Offsets, Offsets,
                          std::pair<std::size_t, std::size_t>, Offsets>;
// In the order of tcboost::DraftRule.
using DraftRule = std::tuple<double, double, double, double, double, double, int, int, std::size_t,
                             std::size_t>;

template <class Bin>
tcboost::StumpRows<Bin> checked_stumps(const Stumps<Bin>& stumps, Offsets y, Reals weight) {
    const auto& [cells, arrays, bins_of, candidates, left, missing, total, starts] = stumps;
    const auto& [feature, cut, missing_right] = candidates;
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = cells.shape(0), D = groups.n_features, all = feature.size();
    if (y.size() != n || weight.size() != n)
        throw std::invalid_argument("cells, y and weight differ in their rows");
    if (all == 0 || cut.size() != all || missing_right.size() != all || left.size() != all ||
        missing.size() != all)
        throw std::invalid_argument("there are no candidates, or they differ in their sizes");
    const std::int64_t n_sums = groups.offset[D];
    const auto no_row = [=](std::int64_t row) { return row >= n_sums; };
    if (std::max(total.first, total.second) >= std::size_t(n_sums) ||
        std::any_of(left.data(), left.data() + all, no_row) ||
        std::any_of(missing.data(), missing.data() + all, no_row))
        throw std::invalid_argument("there is no such row of sums");
    const auto no_feature = [=](std::int64_t d) { return d < 0 || std::size_t(d) >= D; };
    if (std::any_of(feature.data(), feature.data() + all, no_feature) || bins_of.size() != D + 1 ||
        bins_of(0) != 0 || !std::is_sorted(bins_of.data(), bins_of.data() + D + 1) ||
        std::size_t(bins_of(D)) != std::get<2>(arrays).size())
        throw std::invalid_argument("there is no such feature, or no bins of it");
    check_parts(starts, all);
    return {cells.data(), groups, bins_of.data(), feature.data(), cut.data(), missing_right.data(),
            left.data(), missing.data(), total, all, starts.data(), starts.size() - 1, y.data(),
            weight.data()};
}

template <class Bin>
nb::tuple draft_vectors(const Stumps<Bin>& stumps, Offsets y, Reals weight, Offsets place,
                        Offsets start, Reals sorted_weight, Changed F,
                        const std::vector<std::int64_t>& taken, Signs H, Changed W,
                        std::array<double, 4> told, const DraftRule& given, int n_threads) {
    const auto rows = checked_stumps(stumps, y, weight);
    const auto scored = scored_rows(H, start, sorted_weight, F, false, n_threads);
    const std::size_t n = scored.n, C = scored.n_classes, t = taken.size();
    const auto outside = [](std::size_t last) {
        return [=](std::int64_t k) { return k < 0 || std::size_t(k) >= last; };
    };
    if (y.size() != n || place.size() != n)
        throw std::invalid_argument("H, y and place differ in their rows");
    if (std::any_of(y.data(), y.data() + n, outside(C)))
        throw std::invalid_argument("y has other classes than start");
    if (std::any_of(place.data(), place.data() + n, outside(n)))
        throw std::invalid_argument("there is no such place");
    if (std::any_of(taken.begin(), taken.end(), outside(rows.n_stumps)))
        throw std::invalid_argument("there is no such candidate");
    if (H.shape(1) != t || W.ndim() != 2 || W.shape(0) != t || W.shape(1) != C)
        throw std::invalid_argument("H must be rows x columns, and W columns x classes");
    const auto rule = std::apply([](auto... x) { return tcboost::DraftRule{x...}; }, given);
    if (!(rule.price > 0 && rule.tol > 0 && rule.one > 0))
        throw std::invalid_argument("a draft needs a price, a tolerance and a batch");
    if (!(rule.ridge >= 0 && rule.free_ridge >= 0 && rule.sweeps >= 0 && rule.last_sweeps >= 0))
        throw std::invalid_argument("ridges and sweeps must not be negative");
    tcboost::Draft<Bin> run(rows, scored, place.data(), rule, F.data(), taken,
                            {H.data(), H.data() + H.size()}, {W.data(), W.data() + W.size()}, told);
    {
        nb::gil_scoped_release release;
        run.run();
    }
    const std::vector<std::int64_t> added(run.stumps.begin() + std::ptrdiff_t(t), run.stumps.end());
    std::vector<std::int8_t> signs(run.H.begin() + std::ptrdiff_t(n * t), run.H.end());
    return nb::make_tuple(added, as_array(std::move(signs)), as_array(std::move(run.W)), run.told);
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

void check_classes(Offsets y, std::size_t n_classes) {
    const auto known = [=](std::int64_t c) { return 0 <= c && std::size_t(c) < n_classes; };
    if (!std::all_of(y.data(), y.data() + y.shape(0), known))
        throw std::invalid_argument("the code has no such class");
}

void add_codewords(Changed z, double coefficient, Codes signs, Codes M, Offsets y,
                   int n_threads) {
    const std::size_t n = signs.shape(0), width = signs.shape(1);
    if (width == 0 || z.ndim() != 2 || z.shape(0) != n || z.shape(1) != width ||
        M.shape(1) != width || y.shape(0) != n)
        throw std::invalid_argument("z, signs, y and the code differ in their shapes");
    check_classes(y, M.shape(0));
    nb::gil_scoped_release release;
    tcboost::add_codewords(z.data(), coefficient, signs.data(), M.data(), y.data(), n, width,
                           n_threads);
}

auto pairwise_wrong(Margins z, Offsets y, int n_threads) {
    const std::size_t n = z.shape(0);
    if (y.shape(0) != n) throw std::invalid_argument("z and y differ in their rows");
    return filled<bool>({n}, [&](bool* wrong) {
        tcboost::pairwise_wrong(z.data(), y.data(), n, z.shape(1), n_threads, wrong);
    });
}

nb::tuple add_coded(Changed z, double coefficient, Codes signs, Code code, Offsets y, Reals weight,
                    int n_threads) {
    const std::size_t n = y.shape(0), n_classes = code.shape(0);
    if (n == 0 || weight.shape(0) != n || signs.shape(0) != n || signs.shape(1) != 1)
        throw std::invalid_argument("signs, y and weight differ in their rows, or have none");
    if (n_classes < 2 || z.ndim() != 2 || z.shape(0) != n || z.shape(1) != n_classes - 1)
        throw std::invalid_argument("z must be rows x classes less one");
    tcboost::Seen seen;
    {
        nb::gil_scoped_release release;
        seen = tcboost::add_coded(z.data(), coefficient, signs.data(), code.data(), y.data(),
                                  weight.data(), n, n_classes - 1, n_threads);
    }
    return nb::make_tuple(seen.least, seen.error);
}

// Scores by the cells of rows, checked.
template <class Bin>
tcboost::CellScores<Bin> cell_scores(Bins<Bin> cells, Offsets first, Offsets used, Margins table,
                                     std::size_t width) {
    const std::size_t n_groups = cells.shape(1), stride = table.shape(1);
    if (first.shape(0) != n_groups + 1 || table.shape(0) != std::size_t(first(n_groups)))
        throw std::invalid_argument("table needs a row for each cell of each group");
    if (stride < width || stride % 4)
        throw std::invalid_argument("table needs a column a score, and in all a multiple of four");
    for (std::size_t u = 0; u < used.shape(0); ++u)
        if (used(u) < 0 || std::size_t(used(u)) >= n_groups)
            throw std::invalid_argument("there is no such group");
    return {cells.data(), first.data(), used.data(), used.shape(0),
            table.data(), stride,       cells.shape(0)};
}

template <class Bin>
nb::tuple cell_margins(Bins<Bin> cells, Offsets first, Offsets used, Margins table, Offsets y,
                       Reals weight, std::size_t n_classes, int n_threads) {
    const std::size_t n = cells.shape(0);
    if (n == 0 || y.shape(0) != n || weight.shape(0) != n)
        throw std::invalid_argument("cells, y and weight differ in their rows, or have none");
    if (n_classes < 2) throw std::invalid_argument("there must be two classes or more");
    const auto scores = cell_scores(cells, first, used, table, n_classes);
    tcboost::Seen seen;
    const auto z = filled<double>({n, n_classes - 1}, [&](double* out) {
        seen = tcboost::cell_margins(scores, y.data(), weight.data(), n, n_classes - 1, n_threads,
                                     out);
    });
    return nb::make_tuple(z, seen.least, seen.error);
}

template <class Bin>
nb::tuple look_up_and_sum(Bins<Bin> cells, Offsets used, Margins table, Offsets y, Codes M,
                          Reals weight, double top, int bits, double tie,
                          const GroupArrays& arrays, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), arrays);
    const std::size_t n = cells.shape(0), width = M.shape(1);
    if (n == 0 || y.shape(0) != n || weight.shape(0) != n)
        throw std::invalid_argument("cells, y and weight differ in their rows, or have none");
    if (width == 0) throw std::invalid_argument("the code has no bits");
    check_classes(y, M.shape(0));
    const auto scores = cell_scores(cells, std::get<0>(arrays), used, table, width);
    tcboost::LookedUp found;
    Sums sums = sums_of(cells, n, width, y, M, groups, [&](std::size_t, std::int64_t* out) {
        found = tcboost::look_up_and_sum(cells.data(), scores, y.data(), M.data(), M.shape(0),
                                         weight.data(), top, bits, tie, groups, n, width,
                                         n_threads, out);
    });
    return nb::make_tuple(sums, found.total, found.least, found.error);
}

// What `threadpoolctl` asks the kernel for, in a hundredth of the time: 3 of the 5 ms that it takes
// to find the libraries of linear algebra, which every first fit waits for.
std::optional<std::vector<std::string>> loaded_libraries() {
#if defined(__linux__)
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
            return 0;
        },
        &paths);
    return paths;
#else
    return std::nullopt;
#endif
}

NB_MODULE(_core, m) {
    m.doc() = "Kernels of tcboost, stateless functions on arrays, and its restricted masters.";
    const auto def = [&m](auto bin) {
        using Bin = decltype(bin);
        m.def("cell_margins", &cell_margins<Bin>, "cells"_a.noconvert(), "first"_a.noconvert(),
              "used"_a.noconvert(), "table"_a.noconvert(), "y"_a.noconvert(),
              "weight"_a.noconvert(), "n_classes"_a, "n_threads"_a,
              "Pairwise margins of sums of table rows; the least, and the weight of wrong rows.");
        m.def("stump_signs", &stump_signs<Bin>, "cells"_a.noconvert(), "group"_a.noconvert(),
              "place"_a.noconvert(), "start"_a.noconvert(), "candidates"_a.noconvert(), "stumps"_a,
              "What stumps say of each row, side by side.");
        m.def("draft_vectors", &draft_vectors<Bin>, "stumps"_a.noconvert(), "y"_a.noconvert(),
              "weight"_a.noconvert(), "place"_a.noconvert(), "start"_a.noconvert(),
              "sorted_weight"_a.noconvert(), "F"_a.noconvert(), "taken"_a, "H"_a.noconvert(),
              "W"_a.noconvert(), "told"_a, "rule"_a, "n_threads"_a,
              "Rounds at a price; F changes in place. New candidates, their signs, all of W, and "
              "what `descend` tells of it.");
        m.def("prefix_sums", &prefix_sums<Bin>, "cells"_a.noconvert(), "u"_a.noconvert(),
              "y"_a.noconvert().none(), "M"_a.noconvert().none(), "groups"_a.noconvert(),
              "n_threads"_a,
              "Sums of V over the rows, by feature and cumulated over its bins, and by class.");
        m.def("weigh_and_sum", &weigh_and_sum<Bin>, "z"_a.noconvert(), "weight"_a.noconvert(),
              "cross_entropy"_a, "least"_a, "cells"_a.noconvert(), "y"_a.noconvert(),
              "M"_a.noconvert().none(), "groups"_a.noconvert(), "n_threads"_a,
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
    m.def("stump_edges", &stump_edges, "sums"_a.noconvert(), "left"_a.noconvert(),
          "missing"_a.noconvert(), "total"_a,
          "Edges of stumps with the sign +1, from `prefix_sums`.");
    m.def("stump_tables", &stump_tables, "feature"_a, "threshold"_a, "sign"_a, "missing_right"_a,
          "v"_a.noconvert(),
          "For `stump_scores`: features, starts, cuts and the flat table of a sum of stumps.");
    m.def("column_edges", &column_edges, "A"_a.noconvert(), "places"_a.noconvert(),
          "signs"_a.noconvert(),
          "What each stump of columns, or with a code each column, adds to an edge.");
    m.def("largest", &largest, "A"_a.noconvert(), "codes"_a.noconvert().none(),
          "The row of A of the largest edge for each code, or for the best of all, and its edge.");
    m.def("largest_of_parts", &largest_of_parts, "A"_a.noconvert(), "starts"_a.noconvert(), "limit"_a,
          "For each column the rows of A of the largest edges, one a part, up to a limit.");
    m.def("longest", &longest, "A"_a.noconvert(), "taken"_a, "starts"_a.noconvert(), "limit"_a,
          "Lengths of the rows of A, and the longest rows, one a part, that are not taken.");
    m.def("loaded_libraries", &loaded_libraries,
          "Paths of the shared libraries in this process; None where that cannot be told.");
    m.def("descend", &descend, "H"_a.noconvert(), "codes"_a.none(), "start"_a.noconvert(),
          "weight"_a.noconvert(), "W"_a.noconvert(), "F"_a.noconvert(), "linear"_a.none(),
          "theta"_a, "price"_a, "ridge"_a, "free_ridge"_a, "tol"_a, "max_sweeps"_a, "exponential"_a,
          "n_threads"_a,
          "Improve W and F in place; returns the restricted gap, above tol an estimate of it, the "
          "size of W, ridge |W|^2, and <W, minus the gradient of the loss>.");
    m.def("score_gradients", &score_gradients, "H"_a.noconvert(), "start"_a.noconvert(),
          "weight"_a.noconvert(), "F"_a.noconvert(), "exponential"_a, "n_threads"_a,
          "Minus the gradient by the class vector of each column of H, at the scores F.");
    m.def("stump_scores", &stump_scores, "X"_a.noconvert(), "feature"_a.noconvert(),
          "start"_a.noconvert(), "cuts"_a.noconvert(), "table"_a.noconvert(), "unit"_a, "width"_a,
          "best"_a, "n_threads"_a,
          "Scores of the rows of X, or the best of them, from one table a feature.");
    m.def("dual_integers", &dual_integers, "z"_a.noconvert(), "weight"_a.noconvert(),
          "cross_entropy"_a, "u"_a.noconvert(), "n_threads"_a,
          "Dual weights in integers, into u; a loss, the bits, the sum of u, the least z.");
    const auto margins = [&m](auto number) {
        m.def("pairwise_margins", &pairwise_margins<decltype(number)>, "outputs"_a.noconvert(),
              "y"_a.noconvert(), "n_threads"_a, "Margins of outputs.");
    };
    margins(std::int8_t{}), margins(double{});
    m.def("add_codewords", &add_codewords, "z"_a.noconvert(), "coefficient"_a,
          "signs"_a.noconvert(), "M"_a.noconvert(), "y"_a.noconvert(), "n_threads"_a,
          "z += coefficient M[y] signs.");
    m.def("add_coded", &add_coded, "z"_a.noconvert(), "coefficient"_a, "signs"_a.noconvert(),
          "code"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(), "n_threads"_a,
          "z += coefficient times pairwise margins; the least z, and the weight of wrong rows.");
    m.def("pairwise_wrong", &pairwise_wrong, "z"_a.noconvert(), "y"_a.noconvert(), "n_threads"_a,
          "Which rows are misclassified.");
    bind_masters(m);
}
