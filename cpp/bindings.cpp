// The module for Python: shapes are checked in its parts, the work is done without the GIL.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>
#if defined(__linux__)
#include <link.h>
#endif

#include "arrays.hpp"

namespace {

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

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Kernels of tcboost, stateless functions on arrays, and its restricted masters.";
    m.def("loaded_libraries", &loaded_libraries,
          "Paths of the shared libraries in this process; None where that cannot be told.");
    bind_features(m);
    bind_rows(m);
    bind_stumps(m);
    bind_masters(m);
    bind_class_vectors(m);
}
