// Coordinate descent for Python, and the drafts that are made of it.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "chains.hpp"
#include "checks.hpp"
#include "descent.hpp"
#include "draft.hpp"

namespace {

using Signs = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

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

using ChainPlaces = Bins<std::uint16_t>;

tcboost::Chains checked_chains(ChainPlaces places, Offsets first) {
    const std::size_t n = places.shape(0), count = places.shape(1);
    if (first.size() != count + 1 || first(0) != 0 ||
        !std::is_sorted(first.data(), first.data() + count + 1))
        throw std::invalid_argument("first must ascend from zero, with one more entry than chains");
    for (std::size_t g = 0; g < count; ++g) {
        std::uint16_t last = 0;
        for (std::size_t i = 0; i < n; ++i) last = std::max(last, places.data()[g * n + i]);
        if (last > first(g + 1) - first(g))
            throw std::invalid_argument("there is no such place in a chain");
    }
    return {places.data(), first.data(), n, count};
}

auto chain_scores(ChainPlaces places, Offsets first, Matrix V, int n_threads) {
    const auto chains = checked_chains(places, first);
    if (V.shape(0) != chains.columns())
        throw std::invalid_argument("V needs a row for each hypothesis");
    return filled<double>({chains.n, V.shape(1)}, [&](double* out) {
        tcboost::chain_scores(chains, V.data(), V.shape(1), n_threads, out);
    });
}

auto chain_sums(ChainPlaces places, Offsets first, Matrix A, int n_threads) {
    const auto chains = checked_chains(places, first);
    if (A.shape(0) != chains.n) throw std::invalid_argument("A and places differ in their rows");
    return filled<double>({chains.columns(), A.shape(1)}, [&](double* out) {
        tcboost::chain_sums(chains, A.data(), A.shape(1), n_threads, out);
    });
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
    check_below(feature.data(), all, D, "there is no such feature, or no bins of it");
    if (bins_of.size() != D + 1 || bins_of(0) != 0 ||
        !std::is_sorted(bins_of.data(), bins_of.data() + D + 1) ||
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
    if (y.size() != n || place.size() != n)
        throw std::invalid_argument("H, y and place differ in their rows");
    check_below(y.data(), n, C, "y has other classes than start");
    check_below(place.data(), n, n, "there is no such place");
    check_below(taken.data(), t, rows.n_stumps, "there is no such candidate");
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

}  // namespace

void bind_descent(nb::module_& m) {
    m.def("descend", &descend, "H"_a.noconvert(), "codes"_a.none(), "start"_a.noconvert(),
          "weight"_a.noconvert(), "W"_a.noconvert(), "F"_a.noconvert(), "linear"_a.none(),
          "theta"_a, "price"_a, "ridge"_a, "free_ridge"_a, "tol"_a, "max_sweeps"_a, "exponential"_a,
          "n_threads"_a,
          "Improve W and F in place; returns the restricted gap, above tol an estimate of it, the "
          "size of W, ridge |W|^2, and <W, minus the gradient of the loss>.");
    m.def("chain_scores", &chain_scores, "places"_a.noconvert(), "first"_a.noconvert(),
          "V"_a.noconvert(), "n_threads"_a, "H V, for the signs H of hypotheses in chains.");
    m.def("chain_sums", &chain_sums, "places"_a.noconvert(), "first"_a.noconvert(),
          "A"_a.noconvert(), "n_threads"_a, "H' A, for the signs H of hypotheses in chains.");
    const auto def = [&m](auto bin) {
        using Bin = decltype(bin);
        m.def("draft_vectors", &draft_vectors<Bin>, "stumps"_a.noconvert(), "y"_a.noconvert(),
              "weight"_a.noconvert(), "place"_a.noconvert(), "start"_a.noconvert(),
              "sorted_weight"_a.noconvert(), "F"_a.noconvert(), "taken"_a, "H"_a.noconvert(),
              "W"_a.noconvert(), "told"_a, "rule"_a, "n_threads"_a,
              "Rounds at a price; F changes in place. New candidates, their signs, all of W, and "
              "what `descend` tells of it.");
    };
    def(std::uint8_t{}), def(std::uint16_t{}), def(std::uint32_t{});
}
