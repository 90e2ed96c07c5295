#ifndef __ALLOCATOR_SESSION_KEEPER_HPP__
#define __ALLOCATOR_SESSION_KEEPER_HPP__

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "session/backoff.hpp"
#include "session/clock.hpp"
#include "session/decisions.hpp"
#include "session/link.hpp"
#include "session/round_trips.hpp"
#include "session/session.hpp"
#include "session/snapshot.hpp"
#include "session/stats.hpp"

namespace allocator {
namespace session {

struct KeeperOptions
{
  // Identifies the master. The keeper fills in the protocol version and its
  // message size limit.
  wire::Hello hello;

  // The master's clock, in milliseconds. If it steps back, the last time is
  // repeated.
  std::function<int64_t()> clockMs;

  SessionDeadlines deadlines;
  DecisionLimits limits;

  // Delays while the sidecar is unreachable, and after it broke the protocol or
  // refused the session.
  Backoff lost{Duration(50), Duration(1000)};
  Backoff refused{Duration(1000), Duration(30000)};
  uint64_t seed = 0;

  // A session that lasts this long resets the backoff.
  Duration steady{10000};

  // A batch is sent when it has this many events, when its first event has
  // waited this long, or when a cycle is requested.
  size_t batchEventsMax = 512;
  size_t batchEventsIdle = 128; // Enough while the sidecar is idle.
  size_t batchBytesMax = 512 << 10;
  Duration batchDelay{100};

  // An idle session sends an empty batch at this interval, to check that the
  // sidecar is alive; 0: never.
  Duration heartbeat{5000};

  // Adds the owner's figures to the keeper's, which go out with the first batch
  // after each interval. If unset, no figures are sent.
  std::function<void(wire::ModuleFigures*)> writeStats;
  Duration statsInterval{5000};

  // The steady clock; tests may replace it.
  std::function<TimePoint()> now = Clock::now;
};


// Keeps a session with the sidecar for the allocator in the master.
//
// When a session ends for any reason, the keeper begins a new one with a new
// snapshot. Call its methods on the owner's executor only. Callbacks to the
// owner run there as well, but never within a call of the owner. No method
// waits for the sidecar.
class Keeper : private Link::Listener
{
public:
  // How a session or an attempt ended.
  struct End
  {
    Cause cause;
    std::string reason;
    bool wasConnected;
    Duration retryIn;
  };

  class Owner
  {
  public:
    virtual ~Owner() {}

    // Provide the whole state with `snapshot`, at once or in parts, now or
    // later. `welcome` states the sidecar's limits; no chunk should exceed
    // `chunkBytesMax`.
    virtual void welcomed(
        const wire::Welcome& welcome,
        size_t chunkBytesMax) = 0;

    // The sidecar applied the snapshot and answers.
    virtual void connected(const wire::Welcome& welcome) = 0;

    // The answer to a cycle, or one part of it; may have no decisions. Report
    // the outcomes before submitting an event that concerns the offers.
    virtual void decided(Decisions&& decisions) = 0;

    // The session ended; a new attempt follows after the delay.
    virtual void ended(const End& end) = 0;
  };

  Keeper(
      const KeeperOptions& options,
      Owner* owner,
      std::unique_ptr<Link> link);

  // Ends the session in an orderly way.
  ~Keeper() override;

  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void start();
  void stop();

  // Sends the state or a part of it; the last chunk completes it. Events
  // submitted later follow it. A non-empty `error` ends the session instead.
  // Returns false if no snapshot is wanted, or on error.
  bool snapshot(
      std::vector<wire::SnapshotChunk>&& chunks,
      uint64_t revision = 0,
      const std::string& error = std::string());

  // Sends an event. Returns the number of its batch: the sidecar did not know
  // the event when it answered an earlier batch. Returns 0 if there is no
  // session, or if this call ended it; the next snapshot must then include the
  // event. A decision carries the highest `revision` up to the batch that it
  // answers.
  uint64_t submit(wire::Event&& event, uint64_t revision = 0);

  // Asks for a cycle over some agents, or over all if empty. While an earlier
  // cycle is outstanding, requests are merged into one following cycle. Returns
  // false without a session.
  bool cycle(const std::vector<uint32_t>& agents);

  // Reports the outcomes of the oldest decisions that have none yet. Returns
  // false, without effect, for decisions of an earlier session.
  bool report(const Outcomes& outcomes);

  // Whether the sidecar has the whole state and answers.
  bool connected() const { return inStep; }

  // How long the oldest unanswered batch has waited; 0 if none. The owner can
  // act on it before the deadline ends the session.
  Duration waiting() const;

  // How long the sidecar has sent no answer although one is due; 0 if none is
  // due. Shorter than `waiting` if the sidecar works through a backlog.
  Duration quiet() const;

  Stats stats() const;

private:
  void received(wire::SessionResponse&& response) override;
  void lost(const std::string& reason, bool garbage) override;
  void woken() override;

  void connect();
  void welcomed();
  void answered(Session::Reply&& reply);

  bool flush(bool cycle);
  void flushCycle();
  bool isBatchFull() const;
  int64_t tick();
  size_t batchBytesMax() const;
  size_t addStats(wire::EventBatch* batch);
  TimePoint sendAt() const;

  void end(Cause cause, const std::string& reason);
  Duration delay(Cause cause) const;
  void forget();
  void reportEnd();

  void schedule();
  bool streaming() const;

  const KeeperOptions options;
  Owner* const owner;
  const std::unique_ptr<Link> link;

  bool running = false;
  bool inStep = false;
  uint32_t failures = 0;
  std::unique_ptr<Session> session;
  TimePoint connectedAt;
  TimePoint retryAt = TimePoint::max();
  TimePoint alarm = TimePoint::max();
  std::unique_ptr<End> unreported;

  wire::EventBatch pending;
  uint64_t pendingRevision = 0;
  size_t pendingBytes = 0;
  TimePoint pendingSince;
  TimePoint sentAt;
  TimePoint statsAt; // When the next figures are due.
  int64_t clockMs = 0;
  uint64_t sequence = 0;
  uint64_t snapshots = 0;
  size_t messageBytesMax = 0;

  bool cycleWanted = false;
  bool cycleAll = false;
  std::set<uint32_t> cycleAgents;

  Stats counted;
  RoundTrips roundTrips;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_KEEPER_HPP__
