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

// A chunk is closed before it grows beyond this, a quarter of what gRPC
// reads by default.
constexpr size_t CHUNK_BYTES_MAX = 1 << 20;


// Who has what, by the handles of the session.
struct Place
{
  uint32_t framework;
  uint32_t role;
  uint32_t agent;
};


// Amounts by some number, in thousandths: sorted, each number once.
using Amounts = std::vector<std::pair<uint32_t, int64_t>>;

// The first row says which kinds the columns are of; all others are of the
// same.
void addRow(const Place& place, const Amounts& amounts, wire::Holdings* to);


// Lays the whole state, or a part of it, into chunks.
//
// What is added in whatever order goes into the chunks in the order in which
// they are applied: kinds and roles come before whatever names them. Columns
// are dense, so rows of the same kinds stand together, in a chunk of their
// own where there are several such groups.
//
// No chunk is larger than the bound (its number, clock and end apart), except
// where a single noun or a single row is.
class SnapshotWriter
{
public:
  explicit SnapshotWriter(size_t bytesMax = CHUNK_BYTES_MAX);

  // Kinds, roles, weights, quotas, frameworks, agents and the whitelist are
  // added here, and whether the master is paused.
  wire::SnapshotChunk* nouns() { return &all; }

  // A row without an amount is left out.
  void addHolding(const Place& place, const Amounts& amounts);
  void addFilter(const Place& place, const Amounts& refused, int64_t expiresMs);

  void addExclusion(const Place& place);

  // Gives the chunks; none where nothing was added, unless they are the
  // last of the snapshot, which are at least one.
  std::vector<wire::SnapshotChunk> take(bool last);

private:
  // Rows of the same kinds, in chunks of which all but the last are full.
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
  size_t bytes = 0; // Of the last chunk.
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_SNAPSHOT_HPP__
