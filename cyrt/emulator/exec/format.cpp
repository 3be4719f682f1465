#include "exec/format.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace cyrt::emu {

namespace {

bool is_one_of(char c, const char* set) { return c && std::strchr(set, c); }

class Formatter {
  public:
    Formatter(const std::string& format, const FormatArguments& arguments)
        : format_(format), arguments_(arguments) {}

    std::string run(int& count) {
        while (at_ < format_.size()) {
            if (format_[at_] == '%') {
                convert();
            } else {
                const size_t next = std::min(format_.find('%', at_), format_.size());
                out_.append(format_, at_, next - at_);
                at_ = next;
            }
        }
        count = count_;
        return std::move(out_);
    }

  private:
    char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

    uint64_t take(uint64_t size) {
        offset_ = (offset_ + size - 1) / size * size;
        const uint64_t out = size == 8 ? arguments_.long_word(offset_) : arguments_.word(offset_);
        offset_ += size;
        return out;
    }

    // A width or precision: digits, or `*` for an argument. Limited, because the kernel supplies
    // it.
    void take_number(std::string& spec) {
        int value = 0;
        if (peek() == '*') {
            ++at_;
            value = int(uint32_t(take(4)));
            if (value < 0 && spec.back() == '.') {  // ignored, as if there were no precision
                spec.pop_back();
                return;
            }
        } else if (!is_one_of(peek(), "0123456789")) {
            return;
        } else {
            while (is_one_of(peek(), "0123456789"))
                value = std::min(value * 10 + (format_[at_++] - '0'), 4096);
        }
        spec += std::to_string(std::clamp(value, -4096, 4096));
    }

    template <typename Value>
    void append(const std::string& spec, Value value) {
        char text[64];
        const int size = std::snprintf(text, sizeof text, spec.c_str(), value);
        if (size < int(sizeof text)) {
            out_.append(text, size_t(std::max(size, 0)));
            return;
        }
        std::vector<char> longer(size_t(size) + 1);
        std::snprintf(longer.data(), longer.size(), spec.c_str(), value);
        out_.append(longer.data(), size_t(size));
    }

    void convert() {
        const size_t begin = at_++;
        std::string spec = "%";
        while (is_one_of(peek(), "-+ #0")) spec += format_[at_++];
        take_number(spec);
        if (peek() == '.') {
            spec += format_[at_++];
            take_number(spec);
        }
        bool is_long = false;
        while (is_one_of(peek(), "hlLqjzt")) {
            const char size = format_[at_++];
            if (size == 'h')
                spec += size;
            else
                is_long = true;  // long is 64 bits on the device, as are size_t and similar types
        }
        const char kind = peek();
        if (kind) ++at_;
        if (kind == '%') {
            out_ += '%';
            return;
        }
        if (is_one_of(kind, "di")) {
            if (is_long)
                append(spec + "ll" + kind, (long long)take(8));
            else
                append(spec + kind, int(uint32_t(take(4))));
        } else if (is_one_of(kind, "ouxX")) {
            if (is_long)
                append(spec + "ll" + kind, (unsigned long long)take(8));
            else
                append(spec + kind, unsigned(take(4)));
        } else if (is_one_of(kind, "fFeEgGaA")) {
            const uint64_t bits = take(8);
            double value;
            std::memcpy(&value, &bits, sizeof value);
            append(spec + kind, value);
        } else if (kind == 'c') {
            append(spec + kind, int(uint32_t(take(4))));
        } else if (kind == 's') {
            const uint64_t address = take(8);
            append(spec + kind, (address ? arguments_.text(address) : "(null)").c_str());
        } else if (kind == 'p') {
            append(spec + kind, reinterpret_cast<void*>(take(8)));
        } else {  // no conversion: printed unchanged
            out_.append(format_, begin, at_ - begin);
            return;
        }
        ++count_;
    }

    const std::string& format_;
    const FormatArguments& arguments_;
    size_t at_ = 0;
    uint64_t offset_ = 0;
    int count_ = 0;
    std::string out_;
};

}  // namespace

std::string format_printf(const std::string& format, const FormatArguments& arguments, int& count) {
    return Formatter(format, arguments).run(count);
}

}  // namespace cyrt::emu
