#ifndef __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
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


// Who names a role, for that says whose room it takes.
enum class Standing : uint8_t
{
  // Only agents do, beyond their share: a sidecar hears of it as of the nearest
  // role above it that it is told, or as of `Roles::OTHERS`.
  UNTOLD,

  // Only agents do: something is used in it, or below it.
  USED,

  // Frameworks, or operators, name it or one below it.
  SOUGHT,
};


// The tree of roles; number 0 is the root. Numbers are kept until somebody
// finds out that nobody names them any more, the handles of the protocol for
// a session: it hears of a role when it first needs to.
//
// Mesos takes a role of any depth. The tree has so many levels at most; what is
// deeper stands right below the last ancestor that has a place. A role keeps
// its path all the same.
//
// What agents say takes no room from frameworks. A role that is untold has no
// place of its own: it stands below the nearest ancestor that is there, and
// gets its place when somebody seeks it.
class Roles
{
public:
  // What a sidecar is told of untold roles; no role of Mesos has a blank in it.
  static const char* const OTHERS;

  // A role that came between another one and its parent.
  struct Adoption
  {
    uint32_t above;
    uint32_t below;
  };

  Roles() : rows(1) { rows[0].bound = true; }

  // Whether it is a path of names, none of them empty.
  static bool isPath(const std::string& path);

  // For somebody who seeks it. Binds its ancestors, too, as far as a role that
  // is new may have so many levels; two are always there for one that is no
  // top-level role.
  uint32_t number(const std::string& path, size_t levels = ROLE_DEPTH_MAX);

  // For an agent that may bind so many more levels; beyond that, or where there
  // is no room, it is untold.
  uint32_t use(const std::string& path, size_t levelsMax);

  // Untold, where it is new.
  uint32_t note(const std::string& path);

  // How many roles `number` would make ones that are sought.
  size_t lacking(const std::string& path, size_t levels) const
  {
    return lacking(path, levels, Standing::SOUGHT);
  }

  // 0 where it was never bound.
  uint32_t find(const std::string& path) const;

  const std::string& path(uint32_t role) const { return rows[role].path; }

  // The path that a sidecar is told, where it has its place in the tree: of
  // bounded length, UTF-8, and no other role's.
  const std::string& told(uint32_t role) const
  {
    return rows[role].told.empty() ? rows[role].path : rows[role].told;
  }

  // The same of a role that need not be there.
  std::string toldAs(const std::string& path) const;

  uint32_t parent(uint32_t role) const { return rows[role].parent; }

  // The ancestor below the root, which may be the role itself.
  uint32_t top(uint32_t role) const { return rows[role].top; }

  bool nested(uint32_t role) const { return rows[role].parent != 0; }

  // Whether `role` is `ancestor` or below it.
  bool isWithin(uint32_t role, const std::string& ancestor) const;

  Standing standing(uint32_t role) const { return rows[role].standing; }

  // How many there are, the root apart; and those of a standing.
  size_t count() const { return numbers.size(); }
  size_t count(Standing standing) const { return counts[size_t(standing)]; }

  // Those that came between others since the last call, in their order.
  std::vector<Adoption> takeAdopted();

  // Gives up those that are not in use, by number, unless one below them is
  // or the session heard of them. Gives their numbers, which may name others
  // from now on. Those that nobody seeks any more take room of agents.
  std::vector<uint32_t> giveUp(
      std::vector<bool> inUse,
      std::vector<bool> sought);

  // Begins a session: nobody has heard of any role.
  void forgetHandles();

  // How many the session heard of; and of how many in vain, as of the last time
  // that some were given up.
  size_t countHandles() const { return handles.size(); }
  size_t countIdle() const { return idle; }

  // The role's handle in the session. One that is untold has that of another.
  uint32_t handle(uint32_t role);

  // The handle that the session knows what is held in the role by: its own, but
  // for one that was untold until now.
  uint32_t holdHandle(uint32_t role);

  // The same, where the session heard of it; else 0.
  uint32_t heardAs(uint32_t role) const
  {
    return rows[role].before != 0 ? rows[role].before : rows[role].handle;
  }

  // Roles that have handles of their own from now on, though the session heard
  // of what is held in them by other ones.
  const std::vector<uint32_t>& movers() const { return moving; }
  void moved();

  // The role that a handle, which may be any, is bound to; 0 for none.
  uint32_t ofHandle(uint32_t handle) const;

  // Roles with handles that are new since the last call; parents first.
  std::vector<wire::Role> takeNew();

private:
  size_t lacking(const std::string& path, size_t levels, Standing standing)
      const;
  uint32_t place(const std::string& path, size_t levels, Standing standing);
  uint32_t append(const std::string& path, uint32_t parent);
  void adopt(uint32_t role);
  void raise(uint32_t role, Standing standing);
  void set(uint32_t role, Standing standing);
  void lower(
      uint32_t role,
      const std::vector<bool>& sought,
      std::vector<bool>* settled);
  void spread(std::vector<bool>* marked) const;
  bool isHeard(uint32_t role) const;
  uint32_t tell(uint32_t role, const std::string& as);

  struct Row
  {
    std::string path;
    std::string told; // Empty where it is the path.
    uint32_t parent = 0;
    uint32_t top = 0;
    uint32_t handle = 0; // Where it is untold, another's.
    uint32_t before = 0; // The handle that it was untold by.
    Standing standing = Standing::UNTOLD;
    bool bound = false;
  };

  std::vector<Row> rows;
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<uint32_t> free;    // In descending order.
  std::vector<uint32_t> handles; // The role of each handle, from 1.
  std::vector<wire::Role> fresh;
  size_t counts[3] = {};
  size_t idle = 0;
  uint32_t others = 0; // The handle of OTHERS.

  // Untold roles that may lack ancestors.
  std::map<std::string, uint32_t> loose;
  std::vector<Adoption> adopted;
  std::vector<uint32_t> moving;

  // Names that are told instead of paths.
  std::unordered_set<std::string> odd;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__
