// User objects: what a program lets graphs keep.
//
// INVARIANTS
// - The destructor runs once, when neither the program nor a graph has a reference any more.
// - A graph's copies, executable graphs included, have a reference of their own.
#pragma once

#include <map>
#include <memory>

#include "driver/api.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class UserObject {
  public:
    UserObject(void* value, CUhostFn destroy) : value_(value), destroy_(destroy) {}
    ~UserObject() { destroy_(value_); }
    UserObject(const UserObject&) = delete;
    UserObject& operator=(const UserObject&) = delete;

    uintptr_t handle = 0;
    unsigned references = 0;  // the program's

  private:
    void* const value_;
    const CUhostFn destroy_;
};

// The objects that a graph has references to, and how many.
using UserObjects = std::map<std::shared_ptr<UserObject>, unsigned>;

}  // namespace cyrt::emu
