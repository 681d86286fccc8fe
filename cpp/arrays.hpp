// What all files of bindings need; nothing else knows Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace nb = nanobind;
using nb::literals::operator""_a;

using Codes = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A NumPy array that owns what was in the vector.
template <class Number>
nb::object as_array(std::vector<Number> values) {
    auto* owned = new std::vector<Number>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, Number, nb::ndim<1>>(owned->data(), {owned->size()},
                                                                owner));
}

// One of that shape, whose numbers work(numbers) writes without the GIL.
template <class Number, std::size_t Dims, class Work>
nb::ndarray<nb::numpy, Number, nb::ndim<Dims>> filled(const std::size_t (&shape)[Dims], Work work) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    auto* numbers = new Number[size];
    nb::capsule owner(numbers, [](void* p) noexcept { delete[] static_cast<Number*>(p); });
    {
        nb::gil_scoped_release release;
        work(numbers);
    }
    return {numbers, Dims, shape, owner};
}

// One that shares it, and so must not be written to.
inline nb::object as_array(std::shared_ptr<const std::vector<double>> values) {
    auto* shared = new std::shared_ptr<const std::vector<double>>(std::move(values));
    nb::capsule owner(shared, [](void* p) noexcept {
        delete static_cast<std::shared_ptr<const std::vector<double>>*>(p);
    });
    const std::vector<double>& at = **shared;
    return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(at.data(), {at.size()},
                                                                      owner));
}

// The parts of the module, each in a file of its own.
void bind_features(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_stumps(nb::module_& m);
void bind_masters(nb::module_& m);
void bind_class_vectors(nb::module_& m);
