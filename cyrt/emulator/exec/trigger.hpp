// When a kernel lets its dependents start.
#pragma once

namespace cyrt::emu {

struct Program;

// True if a thread may execute griddepcontrol.launch_dependents before griddepcontrol.wait, so that
// dependents may start while what this kernel waits for still runs. A called function counts as one
// that waits.
bool may_trigger_before_waiting(const Program& program);

}  // namespace cyrt::emu
