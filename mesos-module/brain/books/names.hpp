#ifndef __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/words/bounds.hpp"

namespace allocator {
namespace brain {

namespace wire = ::allocator::v1;

// Binds numbers from 1 to ids, the lowest free one first. They are the
// handles of the protocol, too.
//
// Each number remembers a revision: that of the message which said what it is
// bound to, or that it is bound no more. So a decision that was made for
// an earlier bearer of the number is recognised.
class Handles
{
public:
  static constexpr uint32_t NONE = 0;

  // The number keeps its revision until another is sent: who knows its last
  // bearer does not know this one yet.
  uint32_t bind(const std::string& id);

  // `revision` is the one of the message that says so.
  void release(uint32_t handle, uint64_t revision);

  uint32_t find(const std::string& id) const;

  // Null where the number, which may be any, is not bound.
  const std::string* id(uint32_t handle) const;

  void sent(uint32_t handle, uint64_t revision);

  // 0 where the number is not bound.
  uint64_t revision(uint32_t handle) const;

  // Whether the number was bound or released after the revision `known`: then
  // whoever knew of nothing later named it in good faith.
  bool changedSince(uint32_t handle, uint64_t known) const;

  // One more than the largest number that was ever bound.
  uint32_t end() const { return static_cast<uint32_t>(rows.size()) + 1; }

private:
  struct Row
  {
    std::string id;
    bool bound = false;
    uint64_t revision = 0;
  };

  using Free = std::
      priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>>;

  std::vector<Row> rows;
  std::unordered_map<std::string, uint32_t> handles;
  Free free;
};


// The tree of roles; number 0 is the root. Numbers are kept until somebody
// finds out that nobody names them any more, the handles of the protocol for
// a session: it hears of a role when it first needs to.
//
// Mesos takes a role of any depth. The tree has so many levels at most; what is
// deeper stands right below the last ancestor that has a place. A role keeps
// its path all the same.
class Roles
{
public:
  Roles() : rows(1) { rows[0].bound = true; }

  // Whether it is a path of names, none of them empty.
  static bool isPath(const std::string& path);

  // Binds its ancestors, too, as far as a role that is new may have so many
  // levels; two are always there for one that is no top-level role.
  uint32_t number(const std::string& path, size_t levels = ROLE_DEPTH_MAX);

  // 0 where it was never bound.
  uint32_t find(const std::string& path) const;

  const std::string& path(uint32_t role) const { return rows[role].path; }

  // The path that a sidecar is told, where it has its place in the tree: of
  // bounded length, UTF-8, and no other role's.
  const std::string& told(uint32_t role) const
  {
    return rows[role].told.empty() ? rows[role].path : rows[role].told;
  }

  uint32_t parent(uint32_t role) const { return rows[role].parent; }

  // The ancestor below the root, which may be the role itself.
  uint32_t top(uint32_t role) const { return rows[role].top; }

  bool nested(uint32_t role) const { return rows[role].parent != 0; }

  // Whether `role` is `ancestor` or below it, by their paths.
  bool isWithin(uint32_t role, uint32_t ancestor) const;

  // How many there are, the root apart.
  size_t count() const { return numbers.size(); }

  // Gives up those that are not in use, by number, unless one below them is
  // or the session heard of them. Gives their numbers, which may name others
  // from now on.
  std::vector<uint32_t> giveUp(std::vector<bool> inUse);

  // Begins a session: nobody has heard of any role.
  void forgetHandles();

  // How many the session heard of.
  size_t countHandles() const { return handles.size(); }

  // The role's handle in the session.
  uint32_t handle(uint32_t role);

  // The role that a handle, which may be any, is bound to; 0 for none.
  uint32_t ofHandle(uint32_t handle) const;

  // Roles with handles that are new since the last call; parents first.
  std::vector<wire::Role> takeNew();

private:
  uint32_t append(const std::string& path, uint32_t parent);
  std::string tellAs(uint32_t role, uint32_t parent) const;

  struct Row
  {
    std::string path;
    std::string told; // Empty where it is the path.
    uint32_t parent = 0;
    uint32_t top = 0;
    uint32_t handle = 0;
    bool bound = false;
  };

  std::vector<Row> rows;
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<uint32_t> free;    // In descending order.
  std::vector<uint32_t> handles; // The role of each handle, from 1.
  std::vector<wire::Role> fresh;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__
