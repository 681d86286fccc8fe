// The only file that knows Python: shapes are checked here, the work is done without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "histogram.hpp"

namespace nb = nanobind;

template <class Bin>
using Bins = nb::ndarray<const Bin, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Weights = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;

template <class Bin>
Sums prefix_sums(Bins<Bin> bins, Weights V, Offsets offset, int n_threads) {
    const std::size_t n = bins.shape(0), n_features = bins.shape(1), width = V.shape(1);
    if (V.shape(0) != n) throw std::invalid_argument("bins and V differ in their rows");
    if (offset.shape(0) != n_features + 1)
        throw std::invalid_argument("offset needs one entry per feature and one more");
    const std::size_t rows = static_cast<std::size_t>(offset(n_features));
    auto* out = new std::int64_t[rows * width];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
    {
        nb::gil_scoped_release release;
        tcboost::prefix_sums(bins.data(), V.data(), offset.data(), n, n_features, width,
                             n_threads, out);
    }
    return Sums(out, {rows, width}, owner);
}

NB_MODULE(_core, m) {
    m.doc() = "Kernels of tcboost: stateless functions on arrays.";
    const char* doc = "Sums of V over the rows, by feature and cumulated over its bins.";
    m.def("prefix_sums", &prefix_sums<std::uint8_t>, nb::arg("bins").noconvert(),
          nb::arg("V").noconvert(), nb::arg("offset").noconvert(), nb::arg("n_threads"), doc);
    m.def("prefix_sums", &prefix_sums<std::uint16_t>, nb::arg("bins").noconvert(),
          nb::arg("V").noconvert(), nb::arg("offset").noconvert(), nb::arg("n_threads"));
    m.def("prefix_sums", &prefix_sums<std::uint32_t>, nb::arg("bins").noconvert(),
          nb::arg("V").noconvert(), nb::arg("offset").noconvert(), nb::arg("n_threads"));
}
