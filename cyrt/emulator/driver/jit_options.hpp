// The options of a load: buffers for the log. Other options are ignored.
#pragma once

#include <cstddef>
#include <string>

#include "driver/api.hpp"

namespace cyrt::emu {

// One log buffer; the option with its size receives the number of bytes written.
class JitLog {
  public:
    void set_buffer(void* buffer) { buffer_ = static_cast<char*>(buffer); }
    void set_size(void** option) {
        option_ = option;
        room_ = static_cast<unsigned>(reinterpret_cast<uintptr_t>(*option));
    }
    void write(const std::string& text) {
        if (!option_) return;
        size_t count = 0;
        if (buffer_ && room_ > 0) {
            count = text.copy(buffer_, room_ - 1);
            buffer_[count] = '\0';
        }
        *option_ = reinterpret_cast<void*>(count);
    }

  private:
    char* buffer_ = nullptr;
    unsigned room_ = 0;
    void** option_ = nullptr;
};

struct JitLogs {
    JitLog info, error;

    JitLogs() = default;
    JitLogs(unsigned count, CUjit_option* options, void** values) {
        require(count == 0 || (options && values));
        for (unsigned i = 0; i < count; ++i) {
            switch (options[i]) {
            case CU_JIT_INFO_LOG_BUFFER: info.set_buffer(values[i]); break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: info.set_size(&values[i]); break;
            case CU_JIT_ERROR_LOG_BUFFER: error.set_buffer(values[i]); break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: error.set_size(&values[i]); break;
            default: require(options[i] >= 0 && options[i] < CU_JIT_NUM_OPTIONS);
            }
        }
        info.write("");
        error.write("");
    }
};

}  // namespace cyrt::emu
