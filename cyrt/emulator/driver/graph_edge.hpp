// An edge as stored in one of its nodes.
#pragma once

#include "driver/api.hpp"

namespace cyrt::emu {

struct Node;

struct Edge {
    Node* node;  // the other end
    CUgraphEdgeData data;
};

inline bool same_data(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
    return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

inline bool is_default(const CUgraphEdgeData& data) { return same_data(data, CUgraphEdgeData{}); }

}  // namespace cyrt::emu
