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

#include "brain/user_input/bounds.hpp"

namespace allocator {
namespace brain {

namespace wire = ::allocator::v1;

// Binds numbers to ids: from 1, the lowest free number first. The numbers serve
// as handles of the protocol.
//
// Each number has the revision of the message that last bound or released it.
// The revision identifies decisions that were made for an earlier owner of the
// number.
class Handles
{
public:
  static constexpr uint32_t NONE = 0;

  // A reused number keeps the revision of its previous owner until `sent` is
  // called, because until then the sidecar takes the number for that owner.
  uint32_t bind(const std::string& id);

  // `revision`: the revision of the message that reports the release.
  void release(uint32_t handle, uint64_t revision);

  uint32_t find(const std::string& id) const;

  // Null if unbound; any number is allowed.
  const std::string* id(uint32_t handle) const;

  void sent(uint32_t handle, uint64_t revision);

  // 0 if unbound.
  uint64_t revision(uint32_t handle) const;

  // Whether the number was bound or released after revision `known`. If so, a
  // decision that was made at `known` may name it without being bad.
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


// How a role is used, in ascending order. Determines the limit that the role
// counts against.
enum class Standing : uint8_t
{
  // Used by agents only, and beyond the limit on such roles. The sidecar sees
  // the nearest ancestor that it knows instead, or `Roles::OTHERS`.
  FOLDED,

  // Used by agents only: tasks or reservations use the role or a descendant.
  USED,

  // A framework or an operator names the role or a descendant.
  SOUGHT,
};


// The tree of roles; number 0 is the root. A role keeps its number until
// `removeUnused` removes it. It gets a protocol handle when the sidecar first
// needs one, and keeps it for the session.
//
// Mesos allows any depth, but the tree has at most ROLE_DEPTH_MAX levels. A
// deeper role becomes a child of its last ancestor in the tree, and keeps its
// path.
//
// Roles that only agents name do not count against the limit on roles of
// frameworks. A folded role is a child of the nearest existing ancestor until
// a framework or operator names it; only then are its missing ancestors added.
class Roles
{
public:
  // Path reported for folded roles that have no known ancestor. It contains a
  // blank and therefore differs from every valid Mesos role.
  static const char* const OTHERS;

  // `above` was inserted between `below` and its parent.
  struct Adoption
  {
    uint32_t above;
    uint32_t below;
  };

  Roles() : rows(1) { rows[0].bound = true; }

  // Whether `path` consists of non-empty names.
  static bool isPath(const std::string& path);

  // Returns the number of a role that a framework or operator names. Adds the
  // role if it is new, its top-level role, and its missing ancestors down to
  // level `levels`.
  uint32_t number(const std::string& path, size_t levels = ROLE_DEPTH_MAX);

  // Returns the number of a role that an agent uses. Adds the role if it is
  // new: as folded if it needs more than `levelsMax` new levels, or if there is
  // no room.
  uint32_t use(const std::string& path, size_t levelsMax);

  // Returns the number of a role. Adds the role as folded if it is new.
  uint32_t note(const std::string& path);

  // How many roles `number(path, levels)` would add, or raise to SOUGHT.
  size_t lacking(const std::string& path, size_t levels) const
  {
    return lacking(path, levels, Standing::SOUGHT);
  }

  // 0 if unknown.
  uint32_t find(const std::string& path) const;

  const std::string& path(uint32_t role) const { return rows[role].path; }

  // The path reported to the sidecar for a role in the tree: bounded, UTF-8 and
  // unique.
  const std::string& reportedPath(uint32_t role) const
  {
    return rows[role].reported.empty() ? rows[role].path : rows[role].reported;
  }

  // The same for a path that may not be in the tree.
  std::string reportedPathOf(const std::string& path) const;

  uint32_t parent(uint32_t role) const { return rows[role].parent; }

  // The top-level role, possibly the role itself.
  uint32_t top(uint32_t role) const { return rows[role].top; }

  bool nested(uint32_t role) const { return rows[role].parent != 0; }

  bool isWithin(uint32_t role, const std::string& ancestor) const;

  Standing standing(uint32_t role) const { return rows[role].standing; }

  // Number of roles without the root; number of roles of a standing.
  size_t count() const { return numbers.size(); }
  size_t count(Standing standing) const { return counts[size_t(standing)]; }

  // Adoptions since the last call, in order.
  std::vector<Adoption> takeAdopted();

  // Removes roles that are not in use and that the session does not know,
  // unless a descendant is in use or known. Returns their numbers, which may be
  // reused. A remaining role that the session does not know, and that is no
  // longer sought, becomes USED, or FOLDED if there is no room.
  std::vector<uint32_t> removeUnused(
      std::vector<bool> inUse,
      std::vector<bool> sought);

  // Call when a session starts: a new session knows no roles.
  void forgetHandles();

  // Number of handles in the session; how many of them the last `removeUnused`
  // found unused.
  size_t countHandles() const { return handles.size(); }
  size_t countIdle() const { return idle; }

  // The role's handle in the session; a folded role shares an ancestor's
  // handle.
  uint32_t handle(uint32_t role);

  // The handle under which the session knows the role's holdings. A role that
  // was folded keeps the shared handle until `moved` is called.
  uint32_t holdHandle(uint32_t role);

  // Same as `holdHandle`, or 0 if the session does not know the role.
  uint32_t knownHandle(uint32_t role) const
  {
    return rows[role].before != 0 ? rows[role].before : rows[role].handle;
  }

  // Roles that got their own handle while the session still knows their
  // holdings under a shared one. Call `moved` after reporting the change.
  const std::vector<uint32_t>& movers() const { return moving; }
  void moved();

  // The role of a handle, 0 for none; any handle is allowed.
  uint32_t ofHandle(uint32_t handle) const;

  // Roles whose handles are new since the last call, parents first.
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
  bool hasOwnHandle(uint32_t role) const;
  uint32_t assignHandle(uint32_t role, const std::string& as);

  struct Row
  {
    std::string path;
    std::string reported; // Empty if equal to `path`.
    uint32_t parent = 0;
    uint32_t top = 0;
    uint32_t handle = 0; // An ancestor's or OTHERS' if folded.
    uint32_t before = 0; // The shared handle it had while folded.
    Standing standing = Standing::FOLDED;
    bool bound = false;
  };

  std::vector<Row> rows;
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<uint32_t> free;    // Descending.
  std::vector<uint32_t> handles; // Role by handle - 1.
  std::vector<wire::Role> fresh;
  size_t counts[3] = {};
  size_t idle = 0;
  uint32_t others = 0; // The handle of OTHERS.

  // Folded roles, some of whose ancestors may not be in the tree.
  std::map<std::string, uint32_t> loose;
  std::vector<Adoption> adopted;
  std::vector<uint32_t> moving;

  // Reported paths that differ from the role's path.
  std::unordered_set<std::string> odd;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_NAMES_HPP__
