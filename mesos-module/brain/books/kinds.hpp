#ifndef __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "brain/user_input/bounds.hpp"
#include "brain/books/resource_classes.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

// The kinds of a session: the distinctions between resource classes that the
// sidecar knows. Labels, principals, volume ids, sources and providers make no
// distinction. Numbers start at 0 and are not reused within a session.
//
// The number of kinds is limited by the sidecar. Further resource classes share
// the overflow kind of their name, for which room is reserved.
//
// To protect others, each reporter has a share of the kinds for reserved
// resources and of those for names that are not Mesos's own (see `bounds.hpp`).
// Beyond its share a resource goes to the overflow of its name, and a new name
// to one overflow kind for all such names.
class Kinds
{
public:
  static constexpr uint32_t NONE = UINT32_MAX;

  // The protocol's default limit.
  static constexpr size_t MOST_DEFAULT = session::KINDS_DEFAULT;

  // Name of the overflow kind for all names; not a valid resource name in
  // Mesos.
  static const char* const OTHERS;

  explicit Kinds(size_t _most = MOST_DEFAULT);

  // The kind of a defined resource class, bound if necessary. NONE if there is
  // no room even for an overflow kind; then the resource must not be sent to
  // the sidecar.
  uint32_t bind(uint32_t resourceClass, const ResourceClasses& table);

  // NONE if not bound.
  uint32_t find(uint32_t resourceClass) const;

  // The resource class's number is about to be reused.
  void forget(uint32_t resourceClass);

  bool known(uint32_t kind) const { return kind < kinds.size(); }

  // Whether only whole objects of a known kind are given.
  bool whole(uint32_t kind) const
  {
    return kinds[kind].indivisible() || kinds[kind].rest();
  }

  bool isOverflow(uint32_t resourceClass) const
  {
    const uint32_t kind = find(resourceClass);
    return kind != NONE && kinds[kind].rest();
  }

  bool hasOverflow() const { return !over.empty(); }

  // Whether unused kinds take a large part of some share.
  bool hasManyUnused() const;

  // Whether some of the reporter's resources are in an overflow kind.
  // `takeNewlyOver` returns reporters that are new since the last call.
  bool isOver(Reporter reporter) const { return over.count(reporter) > 0; }
  std::vector<Reporter> takeNewlyOver();
  void forgetReporter(Reporter reporter) { over.erase(reporter); }

  // Amounts by kind, sorted; parts without a kind are left out.
  Amounts toAmounts(const Parts& parts, const ResourceClasses& table);

  size_t size() const { return kinds.size(); }
  const std::string& name(uint32_t kind) const { return kinds[kind].name(); }

  // Names whose overflow kind was created since the last call.
  std::vector<std::string> takeCrowded();

  // Kinds created since the last call.
  std::vector<wire::Kind> takeNew();

private:
  // A part of the limit.
  struct Share
  {
    bool hasRoom(const std::string& reporter, size_t kinds) const;

    size_t room;
    size_t taken = 0;
    size_t idle = 0; // Taken by kinds no longer in use.
    std::unordered_map<std::string, size_t> told; // Taken, by reporter.
  };

  // PLAIN: Mesos's own names, unreserved. NAMED: other names. RESERVED: Mesos's
  // own names, reserved.
  enum Room : uint8_t
  {
    PLAIN,
    NAMED,
    RESERVED,
    ROOMS,
  };

  uint32_t number(const ResourceClasses::Row& resourceClass);
  uint32_t overflow(const std::string& name, Reporter reporter);
  uint32_t append(wire::Kind&& kind, Room room);
  void reserveOverflow(const std::string& name);

  size_t most;
  std::array<Share, ROOMS> shares;
  std::vector<wire::Kind> kinds;

  // By kind: the share it belongs to, and the number of its resource classes.
  std::vector<Room> roomOf;
  std::vector<uint32_t> classes;
  std::vector<uint32_t> ofClass;
  std::unordered_map<std::string, uint32_t> byTraits;

  // Overflow kind by name; NONE if room is reserved but no kind exists yet.
  std::unordered_map<std::string, uint32_t> overflows;
  size_t overflowsMissing = 0; // How many are NONE.
  std::vector<std::string> crowded;
  std::set<Reporter> over;
  std::vector<Reporter> newlyOver;
  size_t taken = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__
