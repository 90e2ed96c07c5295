#ifndef __ALLOCATOR_SESSION_SNAPSHOT_HPP__
#define __ALLOCATOR_SESSION_SNAPSHOT_HPP__

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// Limit on the size of a chunk, a quarter of gRPC's default limit.
constexpr size_t CHUNK_BYTES_MAX = 1 << 20;


// A client and an agent, by handles of the session.
struct Place
{
  uint32_t framework;
  uint32_t role;
  uint32_t agent;
};


// Amounts by the number of a kind, in thousandths: sorted, each number once.
using Amounts = std::vector<std::pair<uint32_t, int64_t>>;

// Appends a row. The first row sets the kinds of the columns; all others must
// have the same kinds.
void addRow(const Place& place, const Amounts& amounts, wire::Holdings* to);


// Writes the state, or a part of it, as chunks.
//
// Accepts items in any order, and writes kinds and roles before the items that
// name them. Rows with the same kinds share columns; each further group of rows
// gets its own chunk.
//
// Chunks stay within the limit (apart from sequence number, clock and end mark)
// unless a single item or row exceeds it.
class SnapshotWriter
{
public:
  explicit SnapshotWriter(size_t bytesMax = CHUNK_BYTES_MAX);

  // Add kinds, roles, weights, quotas, frameworks, agents, the whitelist and
  // the pause here.
  wire::SnapshotChunk* nouns() { return &all; }

  // Rows without amounts are ignored.
  void addHolding(const Place& place, const Amounts& amounts);
  void addFilter(const Place& place, const Amounts& refused, int64_t expiresMs);

  void addExclusion(const Place& place);

  // Returns the chunks; at least one if `last`.
  std::vector<wire::SnapshotChunk> take(bool last);

private:
  // Rows by their kinds; all chunks but the last are full.
  using Groups =
      std::map<std::vector<uint32_t>, std::vector<wire::SnapshotChunk>>;

  template <typename RowsOf>
  wire::SnapshotChunk*
  group(Groups* groups, const Amounts& amounts, const RowsOf& rowsOf);

  template <typename Nouns>
  void cut(Nouns* from, Nouns* (wire::SnapshotChunk::*to)());

  wire::SnapshotChunk* room(size_t more);
  void join(const wire::SnapshotChunk& rows, bool apart);

  const size_t bytesMax;

  wire::SnapshotChunk all;
  Groups holdings;
  Groups filters;
  std::vector<wire::SnapshotChunk> exclusions;

  std::vector<wire::SnapshotChunk> chunks;
  size_t bytes = 0; // Size of the last chunk.
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_SNAPSHOT_HPP__
