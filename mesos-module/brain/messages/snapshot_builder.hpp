#ifndef __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__
#define __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brain/books/cluster.hpp"
#include "brain/words/words.hpp"

#include "session/snapshot.hpp"

namespace allocator {
namespace brain {

// Builds the whole state for the sidecar, some of it at a time. It is
// the state of the moment when that began: agents and frameworks are kept
// as they were then, and copied by whoever changes them meanwhile. Kinds
// and roles that become known in the meantime go into it, too.
class SnapshotBuilder
{
public:
  // Nobody has heard of any kind or role then.
  void begin(Cluster* cluster, size_t chunkBytesMax, uint64_t revision);

  bool underWay() const { return running; }

  // Gives up what is under way.
  void stop(Cluster* cluster);

  // Some more; the last chunk of the last part says so.
  std::vector<wire::SnapshotChunk> slice(Cluster* cluster, int64_t nowMs);

  // That of the moment when it began.
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


// As the protocol says it. Handles that are new must be sent before.

wire::Agent toWire(const Agent& agent, uint32_t number, Cluster* cluster);

wire::Framework
toWire(const Framework& framework, uint32_t number, Cluster* cluster);

wire::Quota toWire(const std::string& role, const Cluster::Quota& quota);

wire::Unavailability toWire(const Unavailability& unavailability);

wire::Whitelist toWire(const Cluster& cluster);

// Says what of their resources is part of an overflow, where it is.
void tellOverflow(
    const Agent& agent,
    const Cluster& cluster,
    Aside::Rows* rows);
void tellOverflow(
    const Framework& framework,
    const Cluster& cluster,
    Aside::Rows* rows);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_MESSAGES_SNAPSHOT_BUILDER_HPP__
