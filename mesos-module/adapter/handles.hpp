#ifndef __ALLOCATOR_ADAPTER_HANDLES_HPP__
#define __ALLOCATOR_ADAPTER_HANDLES_HPP__

#include <queue>

#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// Binds small numbers to ids, the lowest free one first.
//
// Each binding remembers the number of the batch that told it, so that a
// decision made for an earlier bearer of the number is recognised.
template <typename Id>
class HandleTable
{
public:
  static constexpr uint32_t NONE = 0;

  uint32_t bind(const Id& id)
  {
    auto found = handles.find(id);
    if (found != handles.end()) {
      return found->second;
    }

    uint32_t handle = static_cast<uint32_t>(rows.size()) + 1;
    if (free.empty()) {
      rows.emplace_back();
    } else {
      handle = free.top();
      free.pop();
    }

    rows[handle - 1] = Row{id, true, 0};
    handles[id] = handle;
    return handle;
  }

  // `batch` is the one that tells of the end.
  void release(const Id& id, uint64_t batch = 0)
  {
    auto found = handles.find(id);
    if (found != handles.end()) {
      rows[found->second - 1] = Row();
      rows[found->second - 1].batch = batch;
      free.push(found->second);
      handles.erase(found);
    }
  }

  uint32_t find(const Id& id) const
  {
    auto found = handles.find(id);
    return found == handles.end() ? NONE : found->second;
  }

  // Null where the number, which may be any, is not bound.
  const Id* id(uint32_t handle) const
  {
    const bool bound =
        handle != NONE && handle <= rows.size() && rows[handle - 1].bound;
    return bound ? &rows[handle - 1].id : nullptr;
  }

  void sent(uint32_t handle, uint64_t batch)
  {
    if (id(handle) != nullptr) {
      rows[handle - 1].batch = batch;
    }
  }

  uint64_t batch(uint32_t handle) const
  {
    return id(handle) == nullptr ? 0 : rows[handle - 1].batch;
  }

  // Whether the number was bound as far as somebody knew who was told all
  // batches up to `known`, and none after.
  bool excused(uint32_t handle, uint64_t known) const
  {
    return handle != NONE && handle <= rows.size() &&
        rows[handle - 1].batch > known;
  }

  void clear()
  {
    rows.clear();
    handles.clear();
    free = Free();
  }

private:
  struct Row
  {
    Id id;
    bool bound = false;
    uint64_t batch = 0;

    Row() {}
    Row(const Id& _id, bool _bound, uint64_t _batch)
      : id(_id), bound(_bound), batch(_batch)
    {
    }
  };

  using Free = std::
      priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>>;

  std::vector<Row> rows;
  hashmap<Id, uint32_t> handles;
  Free free;
};


// What a decision needs to know of a resource. Amounts that are equal in
// it add up, whatever labels, principals, ids of volumes, sources and
// providers their objects carry.
struct Traits
{
  explicit Traits(const Resource& resource);

  // Neither reserved, revocable, shared nor a special disk. A provider
  // makes no difference.
  bool plain() const;

  mesos::Value::Type type;
  uint32_t depth; // Of the stack of reservations.
  bool revocable;
  bool shared;
  wire::DiskForm form;
  bool indivisible; // `Resources::shrink` would refuse to split it.
};


// The kinds of resources. Numbers start at 0 and are never bound again
// within a session.
//
// No more kinds are kept apart than the sidecar takes. What comes beyond
// that is of the rest kind of its name; room for those is kept free.
class KindTable
{
public:
  // `most` is at least 1.
  explicit KindTable(size_t _most = MOST_DEFAULT) : most(_most) {}

  // The number of the resource's kind; NONE where there is no room even
  // for a rest kind, and then the sidecar must not hear of the resource.
  uint32_t intern(const Resource& resource);

  // NONE where it was not interned.
  uint32_t find(const Resource& resource) const;

  bool known(uint32_t kind) const { return kind < kinds.size(); }

  // Whether objects of a known kind are given whole only.
  bool whole(uint32_t kind) const
  {
    return kinds[kind].indivisible() || kinds[kind].rest();
  }

  size_t size() const { return kinds.size(); }

  const std::string& name(uint32_t kind) const { return kinds[kind].name(); }

  // Kinds that were interned since the last call.
  std::vector<wire::Kind> takeNew();

  static constexpr uint32_t NONE = UINT32_MAX;

  // Sidecars take so many unless they say otherwise.
  static constexpr size_t MOST_DEFAULT = 512;

private:
  uint32_t internRest(const std::string& name);
  uint32_t add(wire::Kind&& kind);

  size_t most;
  std::vector<wire::Kind> kinds;

  // By name for each type of value, for most resources are plain; the
  // others by all of their traits.
  hashmap<std::string, uint32_t> plain[3];
  hashmap<std::string, uint32_t> special;

  // The rest kind of each name that was met, or NONE.
  hashmap<std::string, uint32_t> rests;
  size_t restsMissing = 0; // How many of them are NONE.
  size_t taken = 0;
};


// Roles with their ancestors; a role is bound after its parent. They are
// kept until the next session, which begins with those in use.
class RoleTable
{
public:
  uint32_t bind(const std::string& path);

  uint32_t find(const std::string& path) const { return table.find(path); }
  const std::string* path(uint32_t role) const { return table.id(role); }

  std::vector<wire::Role> takeNew();

  void clear();

private:
  HandleTable<std::string> table;
  std::vector<wire::Role> fresh;
};


struct Handles
{
  HandleTable<FrameworkID> frameworks;
  HandleTable<SlaveID> agents;
  RoleTable roles;
  KindTable kinds;
};


// From 0 to the largest amount of the protocol, whatever the value is.
int64_t thousandths(const mesos::Value::Scalar& scalar);


// A resource in thousandths; elements of ranges and sets are counted.
int64_t amountOf(const Resource& resource);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_HANDLES_HPP__
