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

// The kinds of resources that a session distinguishes. A kind groups resource
// classes that differ only in labels, principals, volume ids, sources or
// providers. Numbers start at 0 and are not reused within a session.
//
// The sidecar limits the number of kinds. Resource classes beyond the limit
// belong to the overflow kind of their name, for which room is reserved.
//
// Each reporter may create only a share of the kinds for reserved resources,
// and of the kinds for names that are not Mesos's own (see `bounds.hpp`), so
// that it cannot use up the kinds of others. Beyond its share, a resource
// belongs to the overflow kind of its name. New names beyond the share have one
// overflow kind together.
class Kinds
{
public:
  static constexpr uint32_t NONE = UINT32_MAX;

  static constexpr size_t MOST_DEFAULT = session::KINDS_DEFAULT;

  // Name of the overflow kind for new names beyond a reporter's share; not a
  // valid resource name in Mesos.
  static const char* const OTHERS;

  explicit Kinds(size_t _most = MOST_DEFAULT);

  // The kind of a defined resource class, which is created if necessary. NONE
  // if there is no room even for an overflow kind; then the resource must not
  // be sent to the sidecar.
  uint32_t bind(uint32_t resourceClass, const ResourceClasses& table);

  // NONE if the resource class has no kind yet.
  uint32_t find(uint32_t resourceClass) const;

  // Call before the resource class's number is reused.
  void forget(uint32_t resourceClass);

  bool known(uint32_t kind) const { return kind < kinds.size(); }

  // Whether decisions must give whole objects of the kind. The kind must be
  // known.
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

  // Whether kinds that are no longer in use fill a large part of some share.
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
  // A part of the limit on kinds, and how much of it is taken.
  struct Share
  {
    bool hasRoom(const std::string& reporter, size_t kinds) const;

    size_t room;
    size_t taken = 0;
    size_t idle = 0; // Taken by kinds no longer in use.
    std::unordered_map<std::string, size_t> byReporter; // Taken, by reporter.
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
