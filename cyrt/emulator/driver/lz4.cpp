#include "driver/lz4.hpp"

#include <cstdint>
#include <cstring>

namespace cyrt::emu {

namespace {

struct Input {
    const uint8_t* at;
    const uint8_t* end;

    size_t left() const { return static_cast<size_t>(end - at); }

    // A length of four bits, continued in the next bytes if all four bits are ones.
    bool extend(size_t& length) {
        if (length != 15) return true;
        uint8_t more;
        do {
            if (at == end) return false;
            more = *at++;
            length += more;
        } while (more == 255);
        return true;
    }
};

}  // namespace

size_t lz4_decompress(const char* in, size_t size, char* out, size_t room) {
    auto* begin = reinterpret_cast<const uint8_t*>(in);
    Input input{begin, begin + size};
    size_t made = 0;
    while (input.left() > 0) {
        uint8_t token = *input.at++;
        size_t literals = token >> 4, match = token & 15;
        if (!input.extend(literals) || literals > input.left() || literals > room - made) return 0;
        std::memcpy(out + made, input.at, literals);
        input.at += literals;
        made += literals;
        if (input.left() == 0) break;  // the last sequence has no match
        if (input.left() < 2) return 0;
        size_t distance = input.at[0] | input.at[1] << 8;
        input.at += 2;
        if (!input.extend(match)) return 0;
        match += 4;
        if (distance == 0 || distance > made || match > room - made) return 0;
        for (size_t i = 0; i < match; ++i, ++made) out[made] = out[made - distance];
    }
    return made;
}

}  // namespace cyrt::emu
