// Objects as bytes and back, so that a run can be pickled and go on to the last bit.
//
// An object lists what it consists of once, `visit(see) { see(a, b, c); }`, for both ways.
#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace tcboost {

class Archive {
   public:
    Archive() = default;  // to be written
    Archive(const char* data, std::size_t size) : bytes_(data, size), reading_(true) {}

    const std::string& bytes() const { return bytes_; }

    template <class... Parts>
    void operator()(Parts&... parts) {
        (see(parts), ...);
    }

   private:
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
        if (reading_) {
            if (size > bytes_.size() - place_) throw std::invalid_argument("a damaged state");
            parts.resize(size);
        }
        if constexpr (std::is_trivially_copyable_v<U>)
            raw(parts.data(), size * sizeof(U));
        else
            for (U& part : parts) see(part);
    }

    void raw(void* part, std::size_t size) {
        if (!reading_) {
            bytes_.append(static_cast<const char*>(part), size);
            return;
        }
        if (size > bytes_.size() - place_) throw std::invalid_argument("a damaged state");
        if (size > 0) std::memcpy(part, bytes_.data() + place_, size);
        place_ += size;
    }

    std::string bytes_;
    std::size_t place_ = 0;
    bool reading_ = false;
};

}  // namespace tcboost
