// Objects as bytes and back, so that a run can be pickled and go on to the last bit.
//
// An object lists what it consists of once, `visit(see) { see(a, b, c); }`, for both ways.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tcboost {

struct Archive {
    std::string bytes;
    bool reading = false;
    std::size_t place = 0;

    template <class... Parts>
    void operator()(Parts&... parts) {
        (see(parts), ...);
    }

    template <class Part>
    void see(Part& part) {
        if constexpr (std::is_trivially_copyable_v<Part>)
            raw(&part, sizeof part);
        else
            part.visit(*this);
    }

    template <class U>
    void see(std::vector<U>& parts) {
        std::size_t size = parts.size();
        see(size);
        if (reading && size > bytes.size()) throw std::invalid_argument("a damaged state");
        parts.resize(size);
        if constexpr (std::is_trivially_copyable_v<U>)
            raw(parts.data(), size * sizeof(U));
        else
            for (U& part : parts) see(part);
    }

    template <class U>
    void see(std::shared_ptr<const U>& part) {
        U copy = part ? *part : U{};
        see(copy);
        if (reading) part = std::make_shared<const U>(std::move(copy));
    }

    void raw(void* part, std::size_t size) {
        if (size == 0) return;
        if (!reading) return void(bytes.append(static_cast<const char*>(part), size));
        if (size > bytes.size() - place) throw std::invalid_argument("a damaged state");
        std::memcpy(part, bytes.data() + place, size);
        place += size;
    }
};

}  // namespace tcboost
