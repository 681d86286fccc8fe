// What differs between compilers and machines.
#pragma once

#include <cstddef>
#include <type_traits>

// A function in two versions, one of them for processors with AVX2, chosen when the library is
// loaded (by glibc, and not under a sanitizer). Products are never fused: the bits are the same.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TCBOOST_CLONES
#define TCBOOST_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TCBOOST_WIDE
#endif
// In a third version, for processors with AVX-512: with it in three kernels of the restricted master
// a fit took 0.96 of the time (thyroid, vehicle, svmguide4). Packs of 32 bytes gain nothing.
#if defined(TCBOOST_CLONES) && __GNUC__ >= 12
#define TCBOOST_WIDEST __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define TCBOOST_WIDEST TCBOOST_WIDE
#endif
// Before a loop whose rounds have nothing to do with each other.
#if defined(_MSC_VER)
#define TCBOOST_INDEPENDENT __pragma(loop(ivdep))
#elif defined(__clang__)
#define TCBOOST_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TCBOOST_INDEPENDENT _Pragma("GCC ivdep")
#endif
#if defined(_MSC_VER)
#define TCBOOST_RESTRICT __restrict
#define TCBOOST_INLINE __forceinline
#define TCBOOST_INLINED
#else
#define TCBOOST_RESTRICT __restrict__
// Of a lambda: a function in several versions passes them on only to what is inlined.
#define TCBOOST_INLINED __attribute__((always_inline))
#define TCBOOST_INLINE __attribute__((always_inline)) inline
#endif

namespace tcboost {

// Call work(width), with a constant where it is small: the compiler then writes out the loops over
// the margins of a row, which takes half as long.
template <class Work>
void with_constant(std::size_t width, Work work) {
    switch (width) {
        case 1: return work(std::integral_constant<std::size_t, 1>());
        case 2: return work(std::integral_constant<std::size_t, 2>());
        case 3: return work(std::integral_constant<std::size_t, 3>());
        case 4: return work(std::integral_constant<std::size_t, 4>());
        case 5: return work(std::integral_constant<std::size_t, 5>());
        case 6: return work(std::integral_constant<std::size_t, 6>());
        case 7: return work(std::integral_constant<std::size_t, 7>());
        case 8: return work(std::integral_constant<std::size_t, 8>());
        default: return work(width);
    }
}

}  // namespace tcboost
