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

// What a sidecar knows that believes all it is sent: a snapshot, events and
// outcomes. It says where they do not fit each other.
class Mirror
{
public:
  using Row = std::map<uint32_t, int64_t>; // Amounts by kind.

  void begin();
  void take(const wire::SnapshotChunk& chunk);
  void take(const wire::Event& event);
  void take(const wire::Outcomes& outcomes);

  // Decides on something; gives the answer.
  session::Decisions decide(const std::vector<wire::Holdings>& grants);

  // Says where the brain's books are others.
  std::string compare(Brain* brain) const;

  bool complete = false; // The snapshot is.
  std::string fault;     // The first one.
  uint64_t revision = 0; // Of the last message.

private:
  void bind(const wire::Role& role);
  void judge(const wire::Quantities& quantities);
  void judge(const wire::Framework& framework);
  void add(const wire::Holdings& rows, int64_t sign);
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
  std::map<uint64_t, wire::Holdings> open; // One row each.
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_MIRROR_HPP__
