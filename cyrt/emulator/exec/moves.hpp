// Register-to-register instructions that preparation inserts or lowers itself: conversions between
// cell sizes, vector packs and unpacks, copies between call frames, the stack pointer.
#pragma once

#include "exec/inst.hpp"

namespace cyrt::emu {

// d[0] = s[0] with another cell size; nullptr where the sizes are equal.
Handler resize_handler(uint8_t from_cell, uint8_t to_cell, bool is_signed);

// d[0] = s[0 .. count) of `width` bytes each, lowest first; nullptr if there is no such pack.
Handler pack_handler(uint32_t count, uint32_t width);
// d[0] = piece `index` of `width` bytes of s[0].
Handler extract_handler(uint32_t index, uint32_t width, uint32_t total);

// Copies bytes between frames: bases s[0] (kNoSlot: 0) and s[1], the rest in
// WarpContext::frame_copies[extra].
void copy_frame(Warp& warp, const Inst& inst);

// d[0] = the address of s[0] new bytes aligned to s[1]; s[2], d[1]: the stack pointer.
void allocate_stack(Warp& warp, const Inst& inst);

}  // namespace cyrt::emu
