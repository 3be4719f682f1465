#include "driver/image.hpp"

#include <cctype>
#include <cstring>
#include <fstream>
#include <sstream>

#include "driver/lz4.hpp"

namespace cyrt::emu {

namespace {

// written into programs by nvcc: it points to the fat binary
constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatMagic = 0xba55ed50;
constexpr uint16_t kFatPtx = 1;
constexpr uint64_t kFatLz4 = 0x2000;
constexpr uint64_t kFatZstd = 0x8000;
constexpr uint32_t kOurTarget = 90;

struct Wrapper {
    uint32_t magic, version;
    const void* data;
};

struct FatHeader {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;  // bytes of all entries
};

struct FatEntry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;  // bytes of the payload, padded
    uint32_t compressed_size;
    uint32_t options_offset;
    uint16_t minor, major;
    uint32_t target;
    uint32_t name_offset, name_size;
    uint64_t flags;
    uint64_t reserved;
    uint64_t uncompressed_size;
};

// True if a text begins like PTX: comments, then ".version".
bool is_ptx(const char* text) {
    for (;;) {
        while (std::isspace(static_cast<unsigned char>(*text))) ++text;
        if (std::strncmp(text, "//", 2) == 0) {
            text += std::strcspn(text, "\n");
        } else if (std::strncmp(text, "/*", 2) == 0) {
            text = std::strstr(text + 2, "*/");
            if (!text) return false;
            text += 2;
        } else {
            return std::strncmp(text, ".version", 8) == 0;
        }
    }
}

std::string text_of(const FatEntry& entry, const char* payload) {
    require(!(entry.flags & kFatZstd), CUDA_ERROR_NO_BINARY_FOR_GPU);
    std::string text;
    if (entry.flags & kFatLz4) {
        text.resize(entry.uncompressed_size);
        size_t made = lz4_decompress(payload, entry.compressed_size, text.data(), text.size());
        require(made == text.size(), CUDA_ERROR_INVALID_IMAGE);
    } else {
        text.assign(payload, entry.size);
    }
    return text.substr(0, text.find('\0'));  // padding
}

std::string ptx_of_fatbin(const char* image) {
    FatHeader header;
    std::memcpy(&header, image, sizeof header);
    const char* at = image + header.header_size;
    const char* end = at + header.size;
    const char* best = nullptr;
    uint32_t best_target = 0;
    while (at + sizeof(FatEntry) <= end) {
        FatEntry entry;
        std::memcpy(&entry, at, sizeof entry);
        require(entry.header_size >= sizeof entry &&
                    entry.size <= static_cast<uint64_t>(end - at) - entry.header_size,
                CUDA_ERROR_INVALID_IMAGE);
        if (entry.kind == kFatPtx && entry.target <= kOurTarget && entry.target >= best_target) {
            best = at;
            best_target = entry.target;
        }
        at += entry.header_size + entry.size;
    }
    require(best != nullptr, CUDA_ERROR_NO_BINARY_FOR_GPU);
    FatEntry entry;
    std::memcpy(&entry, best, sizeof entry);
    return text_of(entry, best + entry.header_size);
}

}  // namespace

std::string ptx_of(const void* image) {
    auto* bytes = static_cast<const char*>(image);
    uint32_t magic = 0;
    std::memcpy(&magic, bytes, strnlen(bytes, sizeof magic));  // text may be shorter
    if (magic == kWrapperMagic) {
        Wrapper wrapper;
        std::memcpy(&wrapper, bytes, sizeof wrapper);
        return ptx_of(wrapper.data);
    }
    if (magic == kFatMagic) return ptx_of_fatbin(bytes);
    require(std::memcmp(&magic,
                        "\x7f"
                        "ELF",
                        4) != 0,
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    require(is_ptx(bytes), CUDA_ERROR_INVALID_IMAGE);
    return bytes;
}

std::string read_image(const char* path) {
    std::ifstream file(path, std::ios::binary);
    require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
}

}  // namespace cyrt::emu
