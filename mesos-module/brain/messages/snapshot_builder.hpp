#ifndef __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__
#define __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brain/books/cluster.hpp"
#include "brain/user_input/user_input.hpp"

#include "session/snapshot.hpp"

namespace allocator {
namespace brain {

// Builds the snapshot for the sidecar in slices. It contains agents and
// frameworks as of `begin`, which pins their records, and kinds and roles as of
// the last slice.
class SnapshotBuilder
{
public:
  // The session must not know any kind or role yet.
  void begin(Cluster* cluster, size_t chunkBytesMax, uint64_t revision);

  bool underWay() const { return running; }

  // Aborts the snapshot.
  void stop(Cluster* cluster);

  // The next part; the last chunk of the last part is marked.
  std::vector<wire::SnapshotChunk> slice(Cluster* cluster, int64_t nowMs);

  // The revision passed to `begin`.
  uint64_t revision() const { return revision_; }

private:
  bool build(Cluster* cluster, int64_t nowMs, session::SnapshotWriter* writer);
  size_t buildAgent(
      uint32_t number,
      Cluster* cluster,
      int64_t nowMs,
      session::SnapshotWriter* writer);
  size_t buildExclusions(
      uint32_t number,
      Cluster* cluster,
      session::SnapshotWriter* writer);

  bool running = false;
  size_t chunkBytesMax = 0;
  uint64_t revision_ = 0;

  bool paused = false;
  wire::SnapshotChunk settings; // Weights, quotas and whitelist.
  uint32_t nextFramework = 0;
  uint32_t nextAgent = 0;
  uint32_t nextExclusion = 0;
};


// Conversions to the protocol. Send new kinds and roles before the result.

wire::Agent toWire(const Agent& agent, uint32_t number, Cluster* cluster);

wire::Framework
toWire(const Framework& framework, uint32_t number, Cluster* cluster);

wire::Quota toWire(const std::string& role, const Cluster::Quota& quota);

wire::Unavailability toWire(const Unavailability& unavailability);

wire::Whitelist toWire(const Cluster& cluster);

// Appends a report of the resources of the agent or framework that are in
// overflow kinds, if any.
void sendOverflow(
    const Agent& agent,
    const Cluster& cluster,
    Aside::Rows* rows);
void sendOverflow(
    const Framework& framework,
    const Cluster& cluster,
    Aside::Rows* rows);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__
