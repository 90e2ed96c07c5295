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

// What a keeper needs to know beside where the sidecar is.
struct KeeperOptions
{
  // Who calls. The keeper fills in the version of the protocol, and what
  // it reads.
  wire::Hello hello;

  // The master's clock, in milliseconds. Where it steps back the sidecar
  // is told the latest time again.
  std::function<int64_t()> clockMs;

  SessionDeadlines deadlines;
  DecisionLimits limits;

  // Delays before another attempt: where nobody is there, and where
  // somebody is who does not speak as it should.
  Backoff lost{Duration(50), Duration(1000)};
  Backoff refused{Duration(1000), Duration(30000)};
  uint64_t seed = 0;

  // Reset the backoff after a session that lasted at least so long.
  Duration steady{10000};

  // Events are sent when there are so many of them, or when the first of
  // them has waited so long; a cycle takes all of them along.
  size_t batchEventsMax = 512;
  size_t batchEventsIdle = 128; // Enough while the sidecar has nothing to do.
  size_t batchBytesMax = 512 << 10;
  Duration batchDelay{100};

  // An empty batch is sent where there was none for so long, to see
  // whether the sidecar lives; 0 for never.
  Duration heartbeat{5000};

  // Adds what the owner publishes of itself to what the keeper does; it goes
  // with a batch, so often at most. Without it nothing is sent.
  std::function<void(wire::ModuleFigures*)> writeStats;
  Duration statsInterval{5000};

  // The steady clock; a test may bring its own.
  std::function<TimePoint()> now = Clock::now;
};


// Keeps a session with the sidecar: what the allocator in the master uses.
//
// It keeps one session, and begins a new one, with a snapshot, when that
// ends for whatever reason. It is to be used on its owner's executor
// only, and calls its owner only there, never from within one of its own
// methods. No method waits for the sidecar.
class Keeper : private Link::Listener
{
public:
  // How a session, or an attempt to have one, ended.
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

    // Lay out the whole state, and give it with `snapshot`, now or later,
    // as a whole or in parts. The welcome says what the sidecar takes; no
    // chunk should have more bytes.
    virtual void welcomed(
        const wire::Welcome& welcome,
        size_t chunkBytesMax) = 0;

    // The sidecar has applied the snapshot and answers.
    virtual void connected(const wire::Welcome& welcome) = 0;

    // A cycle was run, perhaps without a decision; this is its answer, or
    // a part of it. The outcomes are to be reported before any event that
    // concerns the offers.
    virtual void decided(Decisions&& decisions) = 0;

    // There is no session any more; one is begun after the delay.
    virtual void ended(const End& end) = 0;
  };

  Keeper(
      const KeeperOptions& options,
      Owner* owner,
      std::unique_ptr<Link> link);

  // A keeper that is destroyed ends its session in an orderly way.
  ~Keeper() override;

  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void start();
  void stop();

  // Sends the state, or a part of it; it is complete with a chunk that is
  // the last. Events that are submitted later come after it. `error` says
  // what is wrong with it, and then ends the session. False where no
  // snapshot is wanted.
  bool snapshot(
      std::vector<wire::SnapshotChunk>&& chunks,
      uint64_t revision = 0,
      const std::string& error = std::string());

  // Sends an event. Gives the number of the batch that it goes with: a
  // decision that answers an earlier one did not know of it. 0 where there
  // is no session, or none any more; the next snapshot must say it then.
  // Decisions bear the revision of the last event that was sent by then.
  uint64_t submit(wire::Event&& event, uint64_t revision = 0);

  // Asks for a cycle over some agents, or over all of them where none is
  // named. While the answer to an earlier cycle is due, what is asked for
  // adds up to one cycle that follows. False where there is no session.
  bool cycle(const std::vector<uint32_t>& agents);

  // Tells what became of the oldest decisions without an outcome; those
  // of an earlier session are passed over (false).
  bool report(const Outcomes& outcomes);

  // Whether the sidecar has the whole state and answers.
  bool connected() const { return inStep; }

  // How long the oldest batch has waited for its answer; 0 where none is
  // due. It lets an owner act before the deadline ends the session.
  Duration waiting() const;

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
  TimePoint statsAt; // When they are due.
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
