// What differs between compilers and machines.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

// A function in two versions, one of them for processors with AVX2, chosen when the library is
// loaded (by glibc, and not under a sanitizer). Products are never fused: the bits are the same.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TCBOOST_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TCBOOST_WIDE
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
#else
#define TCBOOST_RESTRICT __restrict__
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

// Call work(0), ..., work(n - 1) from up to n_threads threads, the caller among them. Work may
// also ask for the number of its thread, from 0 on, as in work(i, thread).
template <class Work>
void parallel_for(std::size_t n, int n_threads, Work work) {
    std::atomic<std::size_t> next{0};
    auto run = [&](std::size_t thread) {
        for (std::size_t i = next++; i < n; i = next++) {
            if constexpr (std::is_invocable_v<Work, std::size_t, std::size_t>)
                work(i, thread);
            else
                work(i), static_cast<void>(thread);
        }
    };
    const std::size_t extra = std::min<std::size_t>(n, std::max(n_threads, 1)) - (n > 0);
    std::vector<std::thread> threads;
    threads.reserve(extra);
    for (std::size_t i = 0; i < extra; ++i) {
        try {
            threads.emplace_back(run, i + 1);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: go on with those there are
        }
    }
    run(0);
    for (auto& thread : threads) thread.join();
}

}  // namespace tcboost
