#include "driver/user_object.hpp"

#include "driver/graph.hpp"

using namespace cyrt::emu;

namespace {

HandleTable<UserObject>& user_objects() {
    static auto& table = *new HandleTable<UserObject>(HandleKind::user_object);
    return table;
}

std::shared_ptr<UserObject> object_from(CUuserObject handle) {
    std::shared_ptr<UserObject> object = user_objects().find(handle);
    require(object != nullptr);
    return object;
}

// Gives back some of the program's references.
void drop(const std::shared_ptr<UserObject>& object, unsigned count) {
    require(count && count <= object->references);
    object->references -= count;
    if (object->references == 0) user_objects().remove(as_handle<CUuserObject>(object->handle));
}

}  // namespace

CYRT_API CUresult cuUserObjectCreate(CUuserObject* out, void* value, CUhostFn destroy,
                                     unsigned count, unsigned flags) {
    return entry([&] {
        require(out && destroy && count && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
        auto object = std::make_shared<UserObject>(value, destroy);
        object->references = count;
        *out = as_handle<CUuserObject>(user_objects().add(std::move(object)));
    });
}

CYRT_API CUresult cuUserObjectRetain(CUuserObject handle, unsigned count) {
    return entry([&] {
        require(count);
        object_from(handle)->references += count;
    });
}

CYRT_API CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
    return entry([&] { drop(object_from(handle), count); });
}

CYRT_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                          unsigned flags) {
    return entry([&] {
        require(count && !(flags & ~CU_GRAPH_USER_OBJECT_MOVE));
        std::shared_ptr<Graph> keeper = graph_from(graph);
        std::shared_ptr<UserObject> object = object_from(handle);
        if (flags & CU_GRAPH_USER_OBJECT_MOVE) drop(object, count);
        keeper->user_objects[object] += count;
    });
}

CYRT_API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count) {
    return entry([&] {
        std::shared_ptr<Graph> keeper = graph_from(graph);
        auto kept = keeper->user_objects.find(object_from(handle));
        require(count && kept != keeper->user_objects.end() && count <= kept->second);
        kept->second -= count;
        if (kept->second == 0) keeper->user_objects.erase(kept);
    });
}
