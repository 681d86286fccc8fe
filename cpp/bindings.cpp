// The kernels for Python: shapes are checked here, the work is done without the GIL.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <link.h>
#endif

#include "arrays.hpp"
#include "descent.hpp"
#include "histogram.hpp"
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

tcboost::Groups checked_groups(std::size_t n_groups, Offsets first, Offsets group, Places place,
                               Offsets offset, Offsets wanted) {
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
    auto* out = new std::int64_t[rows * width];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
    {
        nb::gil_scoped_release release;
        work(width, out);
    }
    return Sums(out, {rows, width}, owner);
}

template <class Bin>
Sums prefix_sums(Bins<Bin> cells, Weights u, std::optional<Offsets> y, std::optional<Codes> M,
                 Offsets first, Offsets group, Places place, Offsets offset, Offsets wanted,
                 int n_threads) {
    const auto groups = checked_groups(cells.shape(1), first, group, place, offset, wanted);
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

using Scores = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

Scores score_gradients(Signs H, Offsets start, Reals weight, Changed F, bool exponential,
                       int n_threads) {
    const auto rows = scored_rows(H, start, weight, F, exponential, n_threads);
    const std::size_t t = H.shape(1);
    auto* out = new double[t * rows.n_classes];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    {
        nb::gil_scoped_release release;
        tcboost::score_gradients(rows, H.data(), t, F.data(), out);
    }
    return Scores(out, {t, rows.n_classes}, owner);
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
        nb::gil_scoped_release release;
        tcboost::stump_scores(X.data(), X.stride(0), X.stride(1), n, model, width, n_threads,
                              scores, classes);
    };
    if (best) {
        auto* out = new std::int64_t[n];
        nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
        run(nullptr, out);
        return nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(out, {n}, owner));
    }
    auto* out = new double[n * width];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    run(out, nullptr);
    return nb::cast(Scores(out, {n, width}, owner));
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
                        Offsets y, std::optional<Codes> M, Offsets first, Offsets group,
                        Places place, Offsets offset, Offsets wanted, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), first, group, place, offset, wanted);
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

template <class Bin>
nb::tuple multiply_and_sum(Changed E, Margins factors, Codes signs, Reals weight, int bits,
                           Bins<Bin> cells, Offsets y, Offsets first, Offsets group, Places place,
                           Offsets offset, Offsets wanted, int n_threads) {
    const auto groups = checked_groups(cells.shape(1), first, group, place, offset, wanted);
    const std::size_t n = y.shape(0), n_classes = factors.shape(0) / 2;
    const std::size_t stride = (n_classes + 3) / 4 * 4;
    if (n == 0 || weight.shape(0) != n || signs.shape(0) != n || signs.shape(1) != 1)
        throw std::invalid_argument("signs, y and weight differ in their rows, or have none");
    if (n_classes < 3 || factors.shape(0) != 2 * n_classes || factors.shape(1) != stride)
        throw std::invalid_argument("factors must be two rows a class, three classes or more");
    if (E.ndim() != 2 || E.shape(0) != n || E.shape(1) != stride)
        throw std::invalid_argument("E must be rows x classes, in fours");
    const tcboost::Factors by{factors.data(), signs.data(), y.data(), weight.data()};
    tcboost::Multiplied found;
    Sums sums = sums_of(cells, n, n_classes - 1, y, std::nullopt, groups,
                        [&](std::size_t, std::int64_t* out) {
                            found = tcboost::multiply_and_sum(E.data(), by, bits, cells.data(),
                                                              groups, n, n_classes, n_threads, out);
                        });
    if (!found.fits) throw std::invalid_argument("y must be below the number of classes");
    return nb::make_tuple(sums, nb::make_tuple(found.total, found.largest, found.error));
}

using Margin8 = nb::ndarray<nb::numpy, std::int8_t, nb::ndim<2>>;

template <class Bin>
Margin8 stump_signs(nb::ndarray<const Bin, nb::ndim<1>, nb::c_contig> cells, Places bins,
                    std::int64_t cut, bool missing_right, int sign) {
    const std::size_t n = cells.shape(0);
    auto* out = new std::int8_t[n];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<std::int8_t*>(p); });
    {
        nb::gil_scoped_release release;
        tcboost::stump_signs(cells.data(), n, bins.data(), bins.shape(0), cut, missing_right, sign,
                             out);
    }
    return Margin8(out, {n, 1}, owner);
}

Sums stump_edges(Weights sums, Offsets left, Offsets missing, Offsets total) {
    const std::size_t n = left.shape(0), width = sums.shape(1);
    if (missing.shape(0) != n || total.shape(0) != width)
        throw std::invalid_argument("left and missing, or sums and total, differ in their shapes");
    const auto no_row = [&](std::int64_t row) { return row >= std::int64_t(sums.shape(0)); };
    if (std::any_of(left.data(), left.data() + n, no_row) ||
        std::any_of(missing.data(), missing.data() + n, no_row))
        throw std::invalid_argument("there is no such row of sums");
    auto* A = new std::int64_t[n * width];
    nb::capsule owner(A, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
    tcboost::stump_edges(sums.data(), width, left.data(), missing.data(), n, total.data(), A);
    return Sums(A, {n, width}, owner);
}

nb::tuple longest(Weights A, const std::vector<std::int64_t>& taken, Offsets starts,
                  std::size_t limit) {
    const std::size_t n = A.shape(0);
    if (starts.size() < 2 || starts(0) != 0 || std::size_t(starts(starts.size() - 1)) != n ||
        !std::is_sorted(starts.data(), starts.data() + starts.size()))
        throw std::invalid_argument("starts must ascend from zero to the number of rows");
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

template <class Number>
using Outputs = nb::ndarray<const Number, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Number>
nb::ndarray<nb::numpy, Number, nb::ndim<2>> pairwise_margins(Outputs<Number> outputs, Offsets y,
                                                             int n_threads) {
    const std::size_t n = outputs.shape(0);
    if (y.shape(0) != n || outputs.shape(1) < 2)
        throw std::invalid_argument("outputs and y differ in their rows, or have one class");
    const std::size_t width = outputs.shape(1) - 1;
    auto* rho = new Number[n * width];
    nb::capsule owner(rho, [](void* p) noexcept { delete[] static_cast<Number*>(p); });
    {
        nb::gil_scoped_release release;
        tcboost::pairwise_margins(outputs.data(), y.data(), n, width, n_threads, rho);
    }
    return {rho, {n, width}, owner};
}

void add_margins(Changed z, double coefficient, Codes rho, int n_threads) {
    if (z.size() != rho.size()) throw std::invalid_argument("z and rho differ in their shapes");
    nb::gil_scoped_release release;
    tcboost::add_margins(z.data(), coefficient, rho.data(), z.size(), n_threads);
}

nb::ndarray<nb::numpy, bool, nb::ndim<1>> pairwise_wrong(Margins z, Offsets y, int n_threads) {
    const std::size_t n = z.shape(0);
    if (y.shape(0) != n) throw std::invalid_argument("z and y differ in their rows");
    auto* wrong = new bool[n];
    nb::capsule owner(wrong, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
    {
        nb::gil_scoped_release release;
        tcboost::pairwise_wrong(z.data(), y.data(), n, z.shape(1), n_threads, wrong);
    }
    return nb::ndarray<nb::numpy, bool, nb::ndim<1>>(wrong, {n}, owner);
}

nb::tuple add_coded(Changed z, double coefficient, Codes signs,
                    nb::ndarray<const std::int8_t, nb::ndim<1>, nb::c_contig> code, Offsets y,
                    Reals weight, int n_threads) {
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

template <class Bin>
nb::tuple cell_margins(Bins<Bin> cells, Offsets first, Offsets used, Margins table, Offsets y,
                       Reals weight, std::size_t n_classes, int n_threads) {
    const std::size_t n = cells.shape(0), n_groups = cells.shape(1), stride = table.shape(1);
    if (n == 0 || y.shape(0) != n || weight.shape(0) != n)
        throw std::invalid_argument("cells, y and weight differ in their rows, or have none");
    if (first.shape(0) != n_groups + 1 || table.shape(0) != std::size_t(first(n_groups)))
        throw std::invalid_argument("table needs a row for each cell of each group");
    if (n_classes < 2 || stride < n_classes || stride % 4)
        throw std::invalid_argument("table needs a column a class, and in all a multiple of four");
    for (std::size_t u = 0; u < used.shape(0); ++u)
        if (used(u) < 0 || std::size_t(used(u)) >= n_groups)
            throw std::invalid_argument("there is no such group");
    auto* z = new double[n * (n_classes - 1)];
    nb::capsule owner(z, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    tcboost::Seen seen;
    {
        nb::gil_scoped_release release;
        seen = tcboost::cell_margins(cells.data(), first.data(), used.data(), used.shape(0),
                                     table.data(), stride, y.data(), weight.data(), n,
                                     n_classes - 1, n_threads, z);
    }
    return nb::make_tuple(Scores(z, {n, n_classes - 1}, owner), seen.least, seen.error);
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
    const auto def = [&m](auto function, auto signs, auto weigh, auto multiply, auto margins) {
        m.def("cell_margins", margins, nb::arg("cells").noconvert(), nb::arg("first").noconvert(),
              nb::arg("used").noconvert(), nb::arg("table").noconvert(), nb::arg("y").noconvert(),
              nb::arg("weight").noconvert(), nb::arg("n_classes"), nb::arg("n_threads"),
              "Pairwise margins of sums of table rows; the least, and the weight of wrong rows.");
        m.def("stump_signs", signs, nb::arg("cells").noconvert(), nb::arg("bins").noconvert(),
              nb::arg("cut"), nb::arg("missing_right"), nb::arg("sign"),
              "What a stump says of each row.");
        m.def("prefix_sums", function, nb::arg("cells").noconvert(),
              nb::arg("u").noconvert(), nb::arg("y").noconvert().none(),
              nb::arg("M").noconvert().none(),
              nb::arg("first").noconvert(), nb::arg("group").noconvert(),
              nb::arg("place").noconvert(), nb::arg("offset").noconvert(),
              nb::arg("wanted").noconvert(), nb::arg("n_threads"),
              "Sums of V over the rows, by feature and cumulated over its bins, and by class.");
        m.def("weigh_and_sum", weigh, nb::arg("z").noconvert(), nb::arg("weight").noconvert(),
              nb::arg("cross_entropy"), nb::arg("least"), nb::arg("cells").noconvert(),
              nb::arg("y").noconvert(), nb::arg("M").noconvert().none(),
              nb::arg("first").noconvert(), nb::arg("group").noconvert(),
              nb::arg("place").noconvert(), nb::arg("offset").noconvert(),
              nb::arg("wanted").noconvert(), nb::arg("n_threads"),
              "`prefix_sums` of the dual weights at margins z, and what `dual_integers` tells.");
        m.def("multiply_and_sum", multiply, nb::arg("E").noconvert(),
              nb::arg("factors").noconvert(), nb::arg("signs").noconvert(),
              nb::arg("weight").noconvert(), nb::arg("bits"), nb::arg("cells").noconvert(),
              nb::arg("y").noconvert(), nb::arg("first").noconvert(),
              nb::arg("group").noconvert(), nb::arg("place").noconvert(),
              nb::arg("offset").noconvert(), nb::arg("wanted").noconvert(), nb::arg("n_threads"),
              "Multiply E, then `prefix_sums` of it; its sum, the largest, weight of wrong rows.");
    };
    def(&prefix_sums<std::uint8_t>, &stump_signs<std::uint8_t>, &weigh_and_sum<std::uint8_t>,
        &multiply_and_sum<std::uint8_t>, &cell_margins<std::uint8_t>);
    def(&prefix_sums<std::uint16_t>, &stump_signs<std::uint16_t>, &weigh_and_sum<std::uint16_t>,
        &multiply_and_sum<std::uint16_t>, &cell_margins<std::uint16_t>);
    def(&prefix_sums<std::uint32_t>, &stump_signs<std::uint32_t>, &weigh_and_sum<std::uint32_t>,
        &multiply_and_sum<std::uint32_t>, &cell_margins<std::uint32_t>);
    m.def("stump_edges", &stump_edges, nb::arg("sums").noconvert(), nb::arg("left").noconvert(),
          nb::arg("missing").noconvert(), nb::arg("total").noconvert(),
          "Edges of stumps with the sign +1, from `prefix_sums`.");
    m.def("stump_tables", &stump_tables, nb::arg("feature"), nb::arg("threshold"),
          nb::arg("sign"), nb::arg("missing_right"), nb::arg("v").noconvert(),
          "For `stump_scores`: features, starts, cuts and the flat table of a sum of stumps.");
    m.def("longest", &longest, nb::arg("A").noconvert(), nb::arg("taken"),
          nb::arg("starts").noconvert(), nb::arg("limit"),
          "Lengths of the rows of A, and the longest rows, one a part, that are not taken.");
    m.def("loaded_libraries", &loaded_libraries,
          "Paths of the shared libraries in this process; None where that cannot be told.");
    m.def("descend", &descend, nb::arg("H").noconvert(), nb::arg("codes").none(),
          nb::arg("start").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("W").noconvert(), nb::arg("F").noconvert(), nb::arg("linear").none(),
          nb::arg("theta"), nb::arg("price"), nb::arg("ridge"), nb::arg("free_ridge"), nb::arg("tol"),
          nb::arg("max_sweeps"), nb::arg("exponential"), nb::arg("n_threads"),
          "Improve W and F in place; returns the restricted gap, above tol an estimate of it, the "
          "size of W, ridge |W|^2, and <W, minus the gradient of the loss>.");
    m.def("score_gradients", &score_gradients, nb::arg("H").noconvert(),
          nb::arg("start").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("F").noconvert(), nb::arg("exponential"), nb::arg("n_threads"),
          "Minus the gradient by the class vector of each column of H, at the scores F.");
    m.def("stump_scores", &stump_scores, nb::arg("X").noconvert(),
          nb::arg("feature").noconvert(), nb::arg("start").noconvert(),
          nb::arg("cuts").noconvert(), nb::arg("table").noconvert(), nb::arg("unit"),
          nb::arg("width"), nb::arg("best"), nb::arg("n_threads"),
          "Scores of the rows of X, or the best of them, from one table a feature.");
    m.def("dual_integers", &dual_integers, nb::arg("z").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("cross_entropy"),
          nb::arg("u").noconvert(), nb::arg("n_threads"),
          "Dual weights in integers, into u; a loss, the bits, the sum of u, the least z.");
    auto margins = [&m](auto function) {
        m.def("pairwise_margins", function, nb::arg("outputs").noconvert(),
              nb::arg("y").noconvert(), nb::arg("n_threads"), "Margins of outputs.");
    };
    margins(&pairwise_margins<std::int8_t>);
    margins(&pairwise_margins<double>);
    m.def("add_margins", &add_margins, nb::arg("z").noconvert(), nb::arg("coefficient"),
          nb::arg("rho").noconvert(), nb::arg("n_threads"), "z += coefficient rho.");
    m.def("add_coded", &add_coded, nb::arg("z").noconvert(), nb::arg("coefficient"),
          nb::arg("signs").noconvert(), nb::arg("code").noconvert(), nb::arg("y").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("n_threads"),
          "z += coefficient times pairwise margins; the least z, and the weight of wrong rows.");
    m.def("pairwise_wrong", &pairwise_wrong, nb::arg("z").noconvert(),
          nb::arg("y").noconvert(), nb::arg("n_threads"), "Which rows are misclassified.");
    bind_masters(m);
}
