// The restricted master of a whole matrix, whose equal rows and columns are taken together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "dense.hpp"
#include "master.hpp"

namespace tcboost {

// The distinct ones among strings of bytes: the number of each, and the first of each number.
struct Distinct {
    std::vector<std::uint32_t> number, first;

    // n strings of `size` bytes; at(i) is where one begins.
    template <class At>
    Distinct(std::size_t n, std::size_t size, At at) : number(n) {
        std::size_t slots = 16;
        while (slots < 2 * n) slots *= 2;
        std::vector<std::uint32_t> table(slots);  // of numbers, plus one
        for (std::size_t i = 0; i < n; ++i) {
            const char* string = at(i);
            std::size_t slot = hash(string, size) & (slots - 1);
            while (table[slot] && std::memcmp(at(first[table[slot] - 1]), string, size) != 0)
                slot = (slot + 1) & (slots - 1);
            if (!table[slot]) {
                first.push_back(static_cast<std::uint32_t>(i));
                table[slot] = static_cast<std::uint32_t>(first.size());
            }
            number[i] = table[slot] - 1;
        }
    }

   private:
    static std::uint64_t hash(const char* string, std::size_t size) {
        std::uint64_t lanes[4] = {1, 2, 3, 4}, words[4];  // which do not wait for each other
        for (; size >= sizeof words; string += sizeof words, size -= sizeof words) {
            std::memcpy(words, string, sizeof words);
            for (std::size_t l = 0; l < 4; ++l) mix(lanes[l], words[l]);
        }
        std::memset(words, 0, sizeof words);
        std::memcpy(words, string, size);
        for (std::size_t l = 0; l < 4; ++l) mix(lanes[l], words[l]);
        for (std::size_t l = 1; l < 4; ++l) mix(lanes[0], lanes[l]);
        return lanes[0];
    }

    static void mix(std::uint64_t& lane, std::uint64_t word) {
        lane = (lane ^ word) * 0x9E3779B97F4A7C15u;
        lane ^= lane >> 32;
    }
};

// The distinct columns of the distinct rows of a matrix by rows.
template <class T>
struct Merged {
    Distinct rows;
    std::vector<Dense<T>> values;
    Distinct columns;

    Merged(const T* P, std::size_t n, std::size_t q)
        : rows(n, q * sizeof(T), [=](std::size_t i) { return as_bytes(P + i * q); }),
          columns(transposed(P, q)) {
        for (std::size_t j = 0; j < columns.first.size(); ++j)
            if (columns.first[j] != j) values[j] = std::move(values[columns.first[j]]);
        values.resize(columns.first.size());
    }

   private:
    static const char* as_bytes(const T* numbers) { return reinterpret_cast<const char*>(numbers); }

    Distinct transposed(const T* P, std::size_t q) {
        constexpr std::size_t block = 32;  // rows that stay in the first cache
        const std::size_t n = rows.first.size();
        values.resize(q);
        for (auto& column : values) column.values.resize(n);
        for (std::size_t start = 0; start < n; start += block) {
            const std::size_t size = std::min(block, n - start);
            const T* from[block];
            for (std::size_t i = 0; i < size; ++i) from[i] = P + rows.first[start + i] * q;
            for (std::size_t j = 0; j < q; ++j) {
                T numbers[block];
                for (std::size_t i = 0; i < size; ++i) numbers[i] = from[i][j];
                std::copy(numbers, numbers + size, values[j].values.data() + start);
            }
        }
        return {q, n * sizeof(T), [&](std::size_t j) { return as_bytes(values[j].values.data()); }};
    }
};

// Solve from w, for weights s of the rows, of which there are n, and q columns. The first of equal
// columns gets the coefficient. Of the masters of `benchmarks/master.py` up to 63 % of the columns
// go, and with them 86 % of the Hessian, and up to 46 % of the rows.
template <class T>
Solution solve_cold(const T* P, std::size_t n, std::size_t q, const SmoothLoss& loss,
                    const double* s, double theta, const double* w, double tol, int max_iter,
                    int n_threads) {
    Merged<T> merged(P, n, q);
    const auto &row = merged.rows.number, &column = merged.columns.number;
    Vector weight(merged.rows.first.size()), start(merged.columns.first.size());
    for (std::size_t i = 0; i < n; ++i) weight[row[i]] += s[i];
    for (std::size_t j = 0; j < q; ++j) start[column[j]] += w[j];
    Master<Dense<T>> master(weight.size(), loss.on_margins(weight, 1), loss.centred, false,
                            true);
    for (auto& values : merged.values) master.add(std::move(values));
    Solution solution = master.solve(theta, std::move(start), tol, max_iter, n_threads);
    State& at = solution.at;
    Vector all(q);
    for (std::size_t j = 0; j < at.w.size(); ++j) all[merged.columns.first[j]] = at.w[j];
    at.w = std::move(all);
    if (weight.size() < n) {
        auto u = std::make_shared<Vector>(n);
        for (std::size_t i = 0; i < n; ++i)
            (*u)[i] = s[i] > 0 ? (*at.u)[row[i]] * (s[i] / weight[row[i]]) : 0.0;
        at.u = u;
    }
    return solution;
}

}  // namespace tcboost
