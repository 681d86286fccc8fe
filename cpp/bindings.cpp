// The module for Python: shapes are checked in its parts, the work is done without the GIL.
#include "arrays.hpp"

NB_MODULE(_core, m) {
    m.doc() = "Kernels of tcboost, stateless functions on arrays, and its restricted masters.";
    bind_features(m);
    bind_rows(m);
    bind_stumps(m);
    bind_masters(m);
    bind_class_vectors(m);
}
