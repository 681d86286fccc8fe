// Class vectors of rules for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "class_vectors.hpp"
#include "edges.hpp"

namespace {

using Cells = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RowNumbers = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Probabilities = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Whether it is ordered, its cells, whether values are missing, the cells of rows, which rows, and
// the cell of the others.
using FeatureArrays =
    std::tuple<bool, std::size_t, bool, Cells, std::optional<RowNumbers>, std::size_t>;

using PenaltyNumbers = std::tuple<double, double, double>;

// Rows, features and labels: what a class vector is fitted to. The arrays are checked once.
class VectorProblem {
  public:
    VectorProblem(std::vector<FeatureArrays> features, Labels y, Reals weight,
                  std::size_t n_classes, int n_threads)
        : arrays_(std::move(features)), y_(y), weight_(weight), n_threads_(n_threads) {
        const std::size_t n = data_.n = y.size();
        if (n_classes < 2) throw std::invalid_argument("there must be two classes or more");
        if (weight.size() != n || n == 0 || n > UINT32_MAX)
            throw std::invalid_argument("y and weight differ in their rows, or have none");
        check_below(y.data(), n, n_classes, "there is no such class");
        double total = 0.0, most = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            if (!(weight(i) >= 0.0)) throw std::invalid_argument("weights must not be negative");
            total += weight(i), most = std::max(most, weight(i));
        }
        if (!(std::abs(total - 1.0) < 1e-6)) throw std::invalid_argument("weights must sum to one");
        data_.first.push_back(0);
        for (const auto& [ordered, n_cells, missing, cells, rows, main] : arrays_) {
            // Of an ordered one the first is that of missing values.
            if (n_cells < (ordered ? 2u : 1u) || n_cells > UINT16_MAX + 1u ||
                (rows && main >= n_cells))
                throw std::invalid_argument("a feature has 1 to 65,536 cells, an ordered one 2");
            if (cells.size() != (rows ? rows->size() : n))
                throw std::invalid_argument("cells and rows differ");
            check_below(cells.data(), cells.size(), n_cells, "there is no such cell");
            if (rows) {
                check_below(rows->data(), rows->size(), n, "there is no such row");
                if (std::adjacent_find(rows->data(), rows->data() + rows->size(),
                                       std::greater_equal<std::uint32_t>()) !=
                    rows->data() + rows->size())
                    throw std::invalid_argument("rows must ascend");
            }
            const auto kind = ordered ? tcboost::Kind::ordered : tcboost::Kind::levels;
            data_.features.push_back({kind, n_cells, missing, cells.data(),
                                      rows ? rows->data() : nullptr, cells.size(), main});
            data_.first.push_back(data_.first.back() + data_.features.back().n_rules());
        }
        data_.y = y.data(), data_.weight = weight.data();
        data_.n_classes = n_classes, data_.stride = tcboost::stride_of(n_classes);
        data_.floor.assign(data_.stride, 0.0);
        std::fill_n(data_.floor.begin(), n_classes, tcboost::least_probability);
        tcboost::make_groups(data_);
        // No sum is beyond 2^60, and no number beyond 2^50.
        data_.scale = std::ldexp(1.0, std::min(59, 49 - std::ilogb(most)));
    }

    std::size_t stride() const { return data_.stride; }
    std::vector<std::size_t> first() const { return data_.first; }
    std::vector<std::vector<std::size_t>> together() const {
        std::vector<std::vector<std::size_t>> found;
        for (const auto& group : data_.groups) found.push_back(group.features);
        return found;
    }
    // The lengths of all edges; the gap over all rules, and over those in use.
    nb::tuple edges(Probabilities p, Reals b, Offsets used, Matrix v, const PenaltyNumbers& penalty,
                    double objective) const {
        check(p, b, used, v);
        std::vector<double> lengths(data_.first.back(), 0.0), of_used(v.size()), constant(b.size());
        tcboost::Gap gap;
        {
            nb::gil_scoped_release release;
            const auto rules = numbers(used);
            tcboost::edges_of(data_, p.data(), rules, n_threads_, lengths.data(), of_used.data(),
                              constant.data());
            gap = tcboost::gap_of(data_, penalty_of(penalty), b.data(), v.data(), rules, objective,
                                  lengths, of_used.data(), constant.data());
        }
        return nb::make_tuple(as_array(std::move(lengths)), gap.all, gap.own);
    }

    // Rules to admit, the longest edge first.
    nb::object worthwhile(Reals lengths, Offsets used, double least, double share) const {
        check_rules(used);
        if (lengths.size() != data_.first.back())
            throw std::invalid_argument("every rule has an edge");
        return as_array(
            tcboost::worthwhile(data_, numbers(used), lengths.data(), least, share));
    }

    // Change p in place; b and the vectors before and after each sweep, b first. What `ask` raises
    // ends it, between two features.
    auto sweeps(Probabilities p, Reals b, Offsets used, Matrix v, const PenaltyNumbers& penalty,
                double curvature, std::size_t n_sweeps, nb::handle ask) const {
        check(p, b, used, v);
        using Clock = std::chrono::steady_clock;
        auto asked = Clock::now();
        const auto checkpoint = [&asked, ask] {
            if (ask.is_none() || Clock::now() - asked < std::chrono::milliseconds(50)) return;
            nb::gil_scoped_acquire acquire;
            ask();
            asked = Clock::now();
        };
        const std::size_t C = data_.n_classes, stride = data_.stride, T = used.size();
        return filled<double>({n_sweeps + 1, T + 1, C}, [&](double* out) {
            std::vector<double> level = padded(b.data(), 1), vectors = padded(v.data(), T);
            tcboost::Sweeper sweeper(data_, numbers(used), n_threads_, checkpoint);
            for (std::size_t k = 0; k <= n_sweeps; ++k) {
                if (k)
                    sweeper.sweep(penalty_of(penalty), curvature, p.data(), level.data(),
                                  vectors.data());
                out = std::copy_n(level.data(), C, out);
                for (std::size_t t = 0; t < T; ++t)
                    out = std::copy_n(&vectors[t * stride], C, out);
            }
        });
    }

    // Those of a model, into p.
    void probabilities(Probabilities p, Reals b, Offsets used, Matrix v) const {
        check(p, b, used, v);
        nb::gil_scoped_release release;
        tcboost::Sweeper(data_, numbers(used), n_threads_)
            .probabilities(padded(b.data(), 1).data(), padded(v.data(), used.size()).data(),
                           p.data());
    }

    // The cross-entropy, the objective, the weight of wrong rows, the least margin, and how far
    // apart p are.
    nb::tuple measures(Probabilities p, Reals b, Offsets used, Matrix v,
                       const PenaltyNumbers& penalty) const {
        check(p, b, used, v);
        tcboost::Measures m;
        double cost;
        {
            nb::gil_scoped_release release;
            m = tcboost::measures(data_, p.data(), n_threads_);
            cost = penalty_of(penalty).of(b.data(), v.data(), used.size(), data_.n_classes);
        }
        return nb::make_tuple(m.loss, m.loss + cost, m.error, m.least, m.spread);
    }

  private:
    static tcboost::Penalty penalty_of(const PenaltyNumbers& penalty) {
        return {std::get<0>(penalty), std::get<1>(penalty), std::get<2>(penalty)};
    }

    static std::vector<std::int64_t> numbers(const Offsets& used) {
        return {used.data(), used.data() + used.size()};
    }

    void check_rules(const Offsets& used) const {
        check_below(used.data(), used.size(), data_.first.back(), "there is no such rule");
        if (std::adjacent_find(used.data(), used.data() + used.size(),
                               std::greater_equal<std::int64_t>()) != used.data() + used.size())
            throw std::invalid_argument("rules must ascend");
    }

    void check(const Probabilities& p, const Reals& b, const Offsets& used, const Matrix& v) const {
        if (p.shape(0) != data_.n || p.shape(1) != data_.stride)
            throw std::invalid_argument("p must be rows x stride");
        check_rules(used);
        if (b.size() != data_.n_classes || v.size() != used.size() * data_.n_classes)
            throw std::invalid_argument("a vector has an entry for each class");
    }

    std::vector<double> padded(const double* from, std::size_t rows) const {
        std::vector<double> to(rows * data_.stride, 0.0);
        for (std::size_t t = 0; t < rows; ++t)
            std::copy_n(from + t * data_.n_classes, data_.n_classes, &to[t * data_.stride]);
        return to;
    }

    std::vector<FeatureArrays> arrays_;  // they own what the data point to
    Labels y_;
    Reals weight_;
    int n_threads_;
    tcboost::LabelledCells data_;
};

}  // namespace

void bind_class_vectors(nb::module_& m) {
    nb::class_<VectorProblem>(m, "VectorProblem", "Rows to fit class vectors to.")
        .def(nb::init<std::vector<FeatureArrays>, Labels, Reals, std::size_t, int>(),
             "features"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "n_classes"_a, "n_threads"_a)
        .def_prop_ro("stride", &VectorProblem::stride, "Entries of a row of probabilities.")
        .def_prop_ro("first", &VectorProblem::first, "The first rule of each feature, and the end.")
        .def_prop_ro("together", &VectorProblem::together,
                     "Features of one cut that a sweep corrects together.")
        .def("edges", &VectorProblem::edges, "p"_a.noconvert(), "b"_a.noconvert(),
             "used"_a.noconvert(), "v"_a.noconvert(), "penalty"_a, "objective"_a)
        .def("worthwhile", &VectorProblem::worthwhile, "lengths"_a.noconvert(),
             "used"_a.noconvert(), "least"_a, "share"_a)
        .def("sweeps", &VectorProblem::sweeps, "p"_a.noconvert(), "b"_a.noconvert(),
             "used"_a.noconvert(), "v"_a.noconvert(), "penalty"_a, "curvature"_a, "n_sweeps"_a,
             "checkpoint"_a = nb::none())
        .def("probabilities", &VectorProblem::probabilities, "p"_a.noconvert(),
             "b"_a.noconvert(), "used"_a.noconvert(), "v"_a.noconvert())
        .def("measures", &VectorProblem::measures, "p"_a.noconvert(), "b"_a.noconvert(),
             "used"_a.noconvert(), "v"_a.noconvert(), "penalty"_a);
}
