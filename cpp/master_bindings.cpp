// The restricted masters for Python, and losses of Python's for the masters.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "master.hpp"

namespace {

template <class Number>
std::vector<Number> as_numbers(nb::handle array) {
    const auto held = nb::cast<nb::ndarray<const Number, nb::ndim<1>, nb::c_contig>>(array);
    return {held.data(), held.data() + held.size()};
}

tcboost::Vector as_vector(Reals array) {
    return {array.data(), array.data() + array.shape(0)};
}

// A loss of Python's, by its `on_margins`: s -> (z -> Expansion). None is the exponential loss.
tcboost::SmoothLoss as_loss(nb::object on_margins, bool centred) {
    if (on_margins.is_none()) return tcboost::exponential_loss();
    return {[on_margins](const tcboost::Vector& s, std::size_t width) -> tcboost::Expand {
                tcboost::Vector all;
                for (double value : s) all.insert(all.end(), width, value);
                nb::object expand = on_margins(as_array(std::move(all)));
                return [expand](tcboost::Vector& z, tcboost::Vector& h) {
                    const std::size_t n = z.size();
                    nb::object at = expand(as_array(std::move(z)));
                    z = as_vector(nb::cast<Reals>(at.attr("u")));
                    h = as_vector(nb::cast<Reals>(at.attr("h")));
                    if (z.size() != n || h.size() != n)
                        throw std::invalid_argument("u and h need one number a margin");
                    return nb::cast<double>(at.attr("loss"));
                };
            },
            centred};
}

// What solve() finds, without the GIL unless it calls Python.
template <class Solve>
nb::tuple as_tuple(bool calls_python, Solve solve) {
    tcboost::Solution solution;
    if (calls_python) {
        solution = solve();
    } else {
        nb::gil_scoped_release release;
        solution = solve();
    }
    tcboost::State& at = solution.at;
    return nb::make_tuple(as_array(std::move(at.w)), as_array(std::move(at.z)),
                          as_array(std::move(at.u)), at.r, at.loss, at.gap, solution.n_iter,
                          solution.optimal);
}

// A restricted master; its columns are copied.
template <class Column>
class Master {
   public:
    Master(Reals s, std::size_t width, nb::object on_margins, bool centred, bool growing)
        : s_(as_vector(s)),
          width_(width),
          on_margins_(on_margins),
          centred_(centred),
          growing_(growing),
          master_(s_.size() * width, as_loss(on_margins, centred).on_margins(s_, width), centred,
                  growing) {}

    void add(nb::ndarray<const typename Column::Number, nb::ndim<2>, nb::f_contig,
                         nb::device::cpu> columns) {
        const std::size_t n = master_.n_rows();
        if (columns.shape(0) != n) throw std::invalid_argument("a column needs one margin a row");
        for (std::size_t j = 0; j < columns.shape(1); ++j)
            master_.add({{columns.data() + j * n, columns.data() + (j + 1) * n}});
    }

    void add_tabled(nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig> cells,
                    Codes table) {
        const std::size_t n = cells.shape(0), rows = table.shape(0);
        if (n != s_.size() || table.shape(1) != width_ || width_ > 128)
            throw std::invalid_argument("a column needs one cell a row, and its margins");
        if (std::any_of(cells.data(), cells.data() + n, [=](auto cell) { return cell >= rows; }))
            throw std::invalid_argument("the table has no such cell");
        const std::size_t stride = (width_ + 7) / 8 * 8;
        std::vector<std::int8_t> padded(rows * stride);
        for (std::size_t i = 0; i < rows; ++i)
            std::copy_n(table.data() + i * width_, width_, padded.data() + i * stride);
        master_.add({{cells.data(), cells.data() + n}, width_, stride, std::move(padded)});
    }

    void split(nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig> parent, Reals s) {
        const std::size_t n = parent.shape(0);
        const std::vector<std::uint32_t> from(parent.data(), parent.data() + n);
        if (s.shape(0) != n || n == 0 || *std::max_element(from.begin(), from.end()) >= s_.size())
            throw std::invalid_argument("a part needs a row that it is of, and a weight");
        tcboost::Vector share(n);
        for (std::size_t i = 0; i < n; ++i)
            share[i] = s_[from[i]] > 0 ? s.data()[i] / s_[from[i]] : 0.0;
        s_ = as_vector(s);
        master_.split({from, share, width_},
                      as_loss(on_margins_, centred_).on_margins(s_, width_));
    }

    void keep(nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> kept) {
        if (kept.shape(0) != master_.n_columns())
            throw std::invalid_argument("kept needs one entry a column");
        master_.keep({kept.data(), kept.data() + kept.shape(0)});
    }

    nb::tuple solve(double theta, Reals w, double tol, int max_iter, int n_threads) {
        if (w.shape(0) != master_.n_columns() || w.shape(0) == 0)
            throw std::invalid_argument("w needs one number a column, and there must be one");
        return as_tuple(!on_margins_.is_none(), [&] {
            return master_.solve(theta, as_vector(w), tol, max_iter, n_threads);
        });
    }

    // What it was made of, and its columns; its model of the loss is formed anew.
    nb::tuple state() const {
        nb::list columns;
        for (const auto& column : master_.columns())
            if constexpr (std::is_same_v<Column, tcboost::Tabled>)
                columns.append(nb::make_tuple(as_array(column->cells), as_array(column->table)));
            else
                columns.append(as_array(column->values));
        return nb::make_tuple(as_array(s_), width_, on_margins_, centred_, growing_, columns);
    }

    void restore(nb::list columns) {
        for (nb::handle column : columns)
            if constexpr (std::is_same_v<Column, tcboost::Tabled>)
                master_.add({as_numbers<std::uint8_t>(column[0]), width_, (width_ + 7) / 8 * 8,
                             as_numbers<std::int8_t>(column[1])});
            else
                master_.add({as_numbers<typename Column::Number>(column)});
    }

   private:
    tcboost::Vector s_;
    std::size_t width_;
    nb::object on_margins_;
    bool centred_, growing_;
    tcboost::Master<Column> master_;
};

double minimise_along(Reals s, nb::object on_margins, bool centred, Reals z, Reals zd,
                      double t_max) {
    if (s.shape(0) != z.shape(0) || s.shape(0) != zd.shape(0))
        throw std::invalid_argument("s, z and zd differ in their length");
    const tcboost::SmoothLoss loss = as_loss(on_margins, centred);
    tcboost::Vector u(z.shape(0)), h;
    return tcboost::minimise_along(loss.on_margins(as_vector(s), 1), loss.centred, as_vector(z),
                                   as_vector(zd), t_max, u, h)
        .t;
}

nb::object solve_simplex_qp(nb::ndarray<const double, nb::ndim<2>, nb::c_contig> H, Reals g,
                            double theta, Reals w) {
    const std::size_t q = g.shape(0);
    if (H.shape(0) != q || H.shape(1) != q || w.shape(0) != q)
        throw std::invalid_argument("H, g and w differ in their size");
    tcboost::Cholesky free;
    const tcboost::Vector slopes = as_vector(g), start = as_vector(w);
    tcboost::Vector d;
    if (!tcboost::SimplexQp(H.data(), q, slopes, theta, start, free).solve(d))
        return nb::none();
    return as_array(std::move(d));
}

}  // namespace

void bind_masters(nb::module_& m) {
    auto master = [&m](auto type, const char* name) {
        using M = Master<decltype(type)>;
        nb::class_<M> master(m, name, "A restricted master; see cpp/master.hpp.");
        if constexpr (std::is_same_v<decltype(type), tcboost::Tabled>)
            master.def("add", &M::add_tabled, "cells"_a.noconvert(), "table"_a.noconvert());
        else
            master.def("add", &M::add, "columns"_a.noconvert());
        master
            .def(nb::init<Reals, std::size_t, nb::object, bool, bool>(), "s"_a, "width"_a,
                 "on_margins"_a.none(), "centred"_a, "growing"_a)
            .def("split", &M::split, "parent"_a.noconvert(), "s"_a)
            .def("keep", &M::keep, "kept"_a)
            .def("solve", &M::solve, "theta"_a, "w"_a, "tol"_a, "max_iter"_a, "n_threads"_a)
            .def("__getstate__", &M::state)
            .def("__setstate__",
                 [](M& self, nb::tuple state) {
                     new (&self) M(nb::cast<Reals>(state[0]), nb::cast<std::size_t>(state[1]),
                                   state[2], nb::cast<bool>(state[3]), nb::cast<bool>(state[4]));
                     self.restore(nb::cast<nb::list>(state[5]));
                 })
            .def("__deepcopy__", [](const M& self, nb::object) { return M(self); });
    };
    master(tcboost::Tabled{}, "MasterTabled");
    master(tcboost::Dense<std::int8_t>{}, "Master8");
    master(tcboost::Dense<std::int16_t>{}, "Master16");
    master(tcboost::Dense<double>{}, "MasterFloat");
    m.def("minimise_along", &minimise_along, "s"_a, "on_margins"_a.none(), "centred"_a, "z"_a,
          "zd"_a, "t_max"_a, "The t in (0, t_max] of least loss at z + t zd.");
    m.def("solve_simplex_qp", &solve_simplex_qp, "H"_a, "g"_a, "theta"_a, "w"_a,
          "The step of a Newton model; None if H is not positive definite.");
}
