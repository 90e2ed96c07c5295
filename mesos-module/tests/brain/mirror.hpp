#ifndef __ALLOCATOR_TESTS_BRAIN_MIRROR_HPP__
#define __ALLOCATOR_TESTS_BRAIN_MIRROR_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "brain/brain.hpp"

namespace allocator {
namespace brain {

// The state of a sidecar that applies every message: snapshot, events and
// outcomes. Detects messages that contradict this state.
class Mirror
{
public:
  using Row = std::map<uint32_t, int64_t>; // Amounts by kind.

  void begin();
  void take(const wire::SnapshotChunk& chunk);
  void take(const wire::Event& event);
  void take(const wire::Outcomes& outcomes);

  // Makes an answer of these decisions.
  session::Decisions decide(
      const std::vector<wire::Holdings>& grants,
      const wire::Gangs& gangs);

  // Returns a difference from the brain's books, or an empty string.
  std::string compare(Brain* brain) const;

  bool complete = false; // Whether the snapshot is complete.
  std::string fault;     // The first contradiction.
  uint64_t revision = 0; // Of the last message.

private:
  void bind(const wire::Role& role);
  void judge(const wire::Quantities& quantities);
  void judge(const wire::Framework& framework);
  void add(const wire::Holdings& rows, int64_t sign);
  void checkGang(uint64_t number, int reason);
  void change(Row* row, uint32_t kind, int64_t amount);
  void fail(const std::string& what);

  std::vector<bool> kinds;
  std::map<uint32_t, std::string> roles;
  std::set<std::string> paths;
  std::map<uint32_t, Row> capacities;
  std::map<uint32_t, bool> frameworks;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Row> held;

  uint64_t session = 0;
  uint64_t nextDecision = 1;
  // Decisions without an outcome, one row each.
  std::map<uint64_t, wire::Holdings> open;

  // `gangOf`: for each decision in a gang, the first decision of the gang.
  // `offered`: whether that first decision was offered.
  std::map<uint64_t, uint64_t> gangOf;
  std::map<uint64_t, bool> offered;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_MIRROR_HPP__
