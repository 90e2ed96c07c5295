#ifndef __ALLOCATOR_BRAIN_LAYOUT_HPP__
#define __ALLOCATOR_BRAIN_LAYOUT_HPP__

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brain/cluster.hpp"
#include "brain/words.hpp"

#include "session/snapshot.hpp"

namespace allocator {
namespace brain {

// Lays out the whole state for the sidecar, some of it at a time. It is
// the state of the moment when that began: agents and frameworks are kept
// as they were then, and copied by whoever changes them meanwhile. Kinds
// and roles that become known in the meantime are laid out, too.
class Layout
{
public:
  // Nobody has heard of any kind or role then.
  void begin(Cluster* cluster, size_t chunkBytesMax, uint64_t mark);

  bool underWay() const { return running; }

  // Gives up what is under way.
  void stop(Cluster* cluster);

  // Some more; the last chunk of the last part says so.
  std::vector<wire::SnapshotChunk> slice(Cluster* cluster, int64_t nowMs);

  // That of the moment when it began.
  uint64_t mark() const { return mark_; }

private:
  struct Bodies;

  void layOutSettings(Cluster* cluster);
  bool layOut(Cluster* cluster, int64_t nowMs, Bodies* bodies);
  void write(Cluster* cluster, Bodies* bodies, session::SnapshotWriter* writer);
  size_t
  layOutAgent(uint32_t number, Cluster* cluster, int64_t nowMs, Bodies* bodies);

  bool running = false;
  bool paused = false;
  size_t chunkBytesMax = 0;
  uint64_t mark_ = 0;

  std::vector<wire::Weight> weights;
  std::vector<wire::Quota> quotas;
  wire::Whitelist whitelist;
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

// Says what of their resources is part of a rest, where it is.
void tellRests(const Agent& agent, const Cluster& cluster, Aside::Rows* rows);
void tellRests(
    const Framework& framework,
    const Cluster& cluster,
    Aside::Rows* rows);

// Says for which agents the framework is excluded.
void addExclusions(
    const Framework& framework,
    uint32_t number,
    Cluster* cluster,
    wire::Exclusions* exclusions);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_LAYOUT_HPP__
