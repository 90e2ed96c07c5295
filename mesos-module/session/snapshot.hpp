#ifndef __ALLOCATOR_SESSION_SNAPSHOT_HPP__
#define __ALLOCATOR_SESSION_SNAPSHOT_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// A chunk is closed before it grows beyond this, a quarter of what gRPC
// reads by default.
constexpr size_t CHUNK_BYTES_MAX = 1 << 20;


// Lays the whole state into chunks.
//
// What is added goes into the chunks in its order, so handles must be
// bound (kinds, roles) before they are used. Kinds, roles, weights,
// quotas, frameworks, agents, holdings, filters, exclusions and the
// whitelist, in this order, make the fewest chunks; and so do columns of
// the same kinds that follow each other, which share a chunk.
//
// No chunk is larger than the bound (its number, clock and end apart),
// except where a single noun or a single row is. Columns are cut into
// pieces of so many rows as fit whatever their numbers are.
class SnapshotWriter
{
public:
  explicit SnapshotWriter(size_t bytesMax = CHUNK_BYTES_MAX);

  // Nouns are moved from.
  void add(wire::Kind&& kind);
  void add(wire::Role&& role);
  void add(wire::Weight&& weight);
  void add(wire::Quota&& quota);
  void add(wire::Framework&& framework);
  void add(wire::Agent&& agent);
  void add(wire::Whitelist&& whitelist);

  // Columns that are not equally long spoil the snapshot; see `error`.
  void add(const wire::Holdings& holdings);
  void add(const wire::OfferFilters& filters);
  void add(const wire::Exclusions& exclusions);

  void setPaused(bool _paused) { paused = _paused; }

  // What is wrong with what was added; empty where nothing is.
  const std::string& error() const { return error_; }

  // Gives the chunks; none where nothing was added, unless they are the
  // last of the snapshot, which are at least one.
  std::vector<wire::SnapshotChunk> take(bool last);

  // The same for a whole snapshot.
  std::vector<wire::SnapshotChunk> finish(uint64_t sequence, int64_t clockMs);

private:
  // Gives the chunk that has room for a piece of `bytes` in `field`; a
  // chunk holds its fields in the order of their numbers, because so they
  // are applied.
  wire::SnapshotChunk* place(int field, bool repeated, size_t bytes);

  // The chunk whose last field is this one, or null.
  wire::SnapshotChunk* current(int field);

  void wrong(const char* what);

  const size_t bytesMax;

  std::vector<wire::SnapshotChunk> chunks;
  size_t bytes = 0;
  int lastField = 0;
  bool paused = false;
  std::string error_;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_SNAPSHOT_HPP__
