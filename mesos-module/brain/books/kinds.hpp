#ifndef __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "brain/words/bounds.hpp"
#include "brain/books/resource_classes.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

// The kinds of a session: what the sidecar keeps apart of the resource classes.
// Labels, principals, ids of volumes, sources and providers make none.
// Numbers start at 0 and are never bound again within a session.
//
// No more kinds are kept apart than the sidecar takes. What comes beyond
// that is of the overflow kind of its name; room for those is kept free.
//
// Nobody takes the room from all others: of what is reserved, and of what has a
// name that is not Mesos's own, each teller has a share (see `bounds.hpp`).
// Beyond it a resource is of the overflow of its name, too; a name that is
// beyond it is of one overflow kind for all such names.
class Kinds
{
public:
  static constexpr uint32_t NONE = UINT32_MAX;

  // Sidecars take so many unless they say otherwise.
  static constexpr size_t MOST_DEFAULT = session::KINDS_DEFAULT;

  // The name of that one kind; no resource of Mesos is called so.
  static const char* const OTHERS;

  explicit Kinds(size_t _most = MOST_DEFAULT);

  // The kind of a resource class that is defined; NONE where there is no room
  // even for an overflow kind, and then the sidecar must not hear of it.
  uint32_t bind(uint32_t resourceClass, const ResourceClasses& table);

  // NONE where it was not bound.
  uint32_t find(uint32_t resourceClass) const;

  // The number of the resource class is to name another.
  void forget(uint32_t resourceClass);

  bool known(uint32_t kind) const { return kind < kinds.size(); }

  // Whether objects of a known kind are given whole only.
  bool whole(uint32_t kind) const
  {
    return kinds[kind].indivisible() || kinds[kind].rest();
  }

  // Whether it is part of an overflow.
  bool isOverflow(uint32_t resourceClass) const
  {
    const uint32_t kind = find(resourceClass);
    return kind != NONE && kinds[kind].rest();
  }

  // Whether anything is.
  bool hasOverflow() const { return !over.empty(); }

  // Whether much of the room is taken by what nobody has any more.
  bool isWorn() const;

  // Of whose resources some are part of an overflow; and those that are new
  // since the last call.
  bool isOver(Teller teller) const { return over.count(teller) > 0; }
  std::vector<Teller> takeOver();
  void forgetTeller(Teller teller) { over.erase(teller); }

  // Amounts by kind; parts that no kind can be bound for are left out.
  Amounts toAmounts(const Parts& parts, const ResourceClasses& table);

  size_t size() const { return kinds.size(); }
  const std::string& name(uint32_t kind) const { return kinds[kind].name(); }

  // Names whose resource classes became too many since the last call.
  std::vector<std::string> takeCrowded();

  // Kinds that are new since the last call.
  std::vector<wire::Kind> takeNew();

private:
  // A part of the room.
  struct Share
  {
    bool hasRoom(const std::string& teller, size_t kinds) const;

    size_t room;
    size_t taken = 0;
    size_t idle = 0; // Of what is taken, kinds that nobody has any more.
    std::unordered_map<std::string, size_t> told; // How many each teller took.
  };

  // Mesos's own names unreserved, other names, and what is reserved.
  enum Room : uint8_t
  {
    PLAIN,
    NAMED,
    RESERVED,
    ROOMS,
  };

  uint32_t number(const ResourceClasses::Row& resourceClass);
  uint32_t overflow(const std::string& name, Teller teller);
  uint32_t append(wire::Kind&& kind, Room room);
  void meet(const std::string& name);

  size_t most;
  std::array<Share, ROOMS> shares;
  std::vector<wire::Kind> kinds;

  // Of each kind, the part that it takes room of, and how many resource classes
  // it has.
  std::vector<Room> roomOf;
  std::vector<uint32_t> classes;
  std::vector<uint32_t> ofClass;
  std::unordered_map<std::string, uint32_t> byTraits;

  // The overflow kind of each name that was met and has room, or NONE.
  std::unordered_map<std::string, uint32_t> overflows;
  size_t overflowsMissing = 0; // How many of them are NONE.
  std::vector<std::string> crowded;
  std::set<Teller> over;
  std::vector<Teller> overNow;
  size_t taken = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_KINDS_HPP__
