#include "session/keeper.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace session {
namespace {

// Limit of a sidecar that states none: gRPC's default.
constexpr size_t MESSAGE_BYTES_DEFAULT = 4 << 20;

// Smallest limit that a sidecar can set.
constexpr size_t MESSAGE_BYTES_LEAST = 64 << 10;

// Size of a batch without events and agents.
constexpr size_t BATCH_BYTES = 64;

// A cycle over more agents covers all of them.
constexpr size_t CYCLE_AGENTS_MAX = 1 << 14;

} // namespace {


Keeper::Keeper(
    const KeeperOptions& _options,
    Owner* _owner,
    std::unique_ptr<Link> _link)
  : options(_options), owner(_owner), link(std::move(_link))
{
  link->listen(this);
}


Keeper::~Keeper()
{
  stop();
  link->listen(nullptr);
}


void Keeper::start()
{
  if (!running) {
    running = true;
    connect();
  }
}


void Keeper::stop()
{
  if (session) {
    link->close(true);
  }

  running = false;
  session.reset();
  unreported.reset();
  forget();
}


bool Keeper::streaming() const
{
  return session && session->state() == Session::State::STREAMING;
}


void Keeper::connect()
{
  const TimePoint now = options.now();

  ++counted.attempts;
  retryAt = TimePoint::max();
  session.reset(
      new Session(counted.attempts, options.deadlines, options.limits));

  wire::Hello hello = options.hello;
  hello.set_message_bytes_max(static_cast<uint32_t>(
      std::min<size_t>(link->receiveBytesMax(), UINT32_MAX)));

  wire::SessionRequest request;
  session->hello(hello, now, &request);

  link->open();
  link->send(std::move(request), 0);
  schedule();
}


void Keeper::received(wire::SessionResponse&& response)
{
  if (!session) {
    return;
  }

  Session::Reply reply = session->receive(std::move(response), options.now());

  switch (reply.kind) {
    case Session::Reply::Kind::WELCOME: welcomed(); break;
    case Session::Reply::Kind::DECISIONS: answered(std::move(reply)); break;
    case Session::Reply::Kind::ENDED:
      // A sidecar that shuts down is likely to return soon.
      end(reply.code == wire::ERROR_CODE_SHUTDOWN ? Cause::LOST
                                                  : Cause::REFUSED,
          reply.message);
      break;
    case Session::Reply::Kind::BAD: end(Cause::MALFORMED, reply.message); break;
  }

  reportEnd();
  schedule();
}


void Keeper::welcomed()
{
  const size_t asked = session->welcome().message_bytes_max();
  messageBytesMax =
      asked == 0 ? MESSAGE_BYTES_DEFAULT : std::max(asked, MESSAGE_BYTES_LEAST);

  // Copy: the owner may stop the keeper and thereby destroy the session.
  const wire::Welcome welcome = session->welcome();
  owner->welcomed(welcome, std::min(CHUNK_BYTES_MAX, messageBytesMax / 2));
}


bool Keeper::snapshot(
    std::vector<wire::SnapshotChunk>&& chunks,
    uint64_t revision,
    const std::string& error)
{
  if (!session || session->state() != Session::State::WELCOME) {
    return false;
  }

  if (!error.empty()) {
    end(Cause::SNAPSHOT, error);
    schedule();
    return false;
  }

  const bool last = !chunks.empty() && chunks.back().last();
  if (last) {
    chunks.back().set_sequence(sequence);
    chunks.back().set_clock_ms(tick());
  }

  std::vector<wire::SessionRequest> requests;
  session->snapshot(std::move(chunks), options.now(), &requests);

  for (wire::SessionRequest& request : requests) {
    link->sendSnapshot(std::move(request));
  }

  if (last) {
    counted.resyncs += snapshots++ > 0 ? 1 : 0;
    pendingRevision = revision;

    // The answer to an empty batch confirms the snapshot.
    flush(false);
    schedule();
  }

  return true;
}


void Keeper::answered(Session::Reply&& reply)
{
  if (!reply.decisions.more) {
    roundTrips.add(reply.waited);
  }

  counted.decisions += reply.decisions.size();

  if (!inStep) {
    inStep = true;
    connectedAt = options.now();
    ++counted.sessions;

    // Copy: the owner may stop the keeper and thereby destroy the session.
    const wire::Welcome welcome = session->welcome();
    owner->connected(welcome);
  }

  if (session && reply.decisions.cycle > 0) {
    owner->decided(std::move(reply.decisions));
  }

  flushCycle();

  if (streaming() && isBatchFull()) {
    flush(false);
  }
}


void Keeper::lost(const std::string& reason, bool garbage)
{
  if (session) {
    const bool greeting = session->state() == Session::State::GREETING;

    end(garbage        ? Cause::MALFORMED
            : greeting ? Cause::UNREACHABLE
                       : Cause::LOST,
        reason);
  }

  reportEnd();
  schedule();
}


void Keeper::woken()
{
  alarm = TimePoint::max();
  reportEnd();

  const TimePoint now = options.now();

  if (running && !session && now >= retryAt) {
    connect();
  } else if (session) {
    const bool greeting = session->state() == Session::State::GREETING;
    const std::string silence = session->expire(now);

    if (!silence.empty()) {
      end(greeting ? Cause::UNREACHABLE : Cause::SILENT, silence);
      reportEnd();
    } else if (now >= sendAt()) {
      flush(false);
    }
  }

  schedule();
}


uint64_t Keeper::submit(wire::Event&& event, uint64_t revision)
{
  if (!streaming()) {
    return 0;
  }

  const size_t bytes = event.ByteSizeLong() + 8;
  const bool first = pending.events_size() == 0;

  if (bytes + BATCH_BYTES > messageBytesMax) {
    end(Cause::OVERSIZED,
        "an event has " + std::to_string(bytes) + " bytes; the sidecar reads " +
            std::to_string(messageBytesMax));
    schedule();
    return 0;
  }

  if (!first && pendingBytes + bytes > batchBytesMax() && !flush(false)) {
    return 0;
  }

  if (pending.events_size() == 0) {
    pendingSince = options.now();
  }

  const uint64_t number = session->sequence() + 1;
  pendingRevision = std::max(pendingRevision, revision);
  pending.add_events()->Swap(&event);
  pendingBytes += bytes;

  if (isBatchFull() && !flush(false)) {
    return 0;
  }

  if (first) {
    schedule();
  }

  return number;
}


bool Keeper::cycle(const std::vector<uint32_t>& agents)
{
  if (!streaming()) {
    return false;
  }

  cycleWanted = true;
  cycleAll = cycleAll || agents.empty();

  if (!cycleAll) {
    cycleAgents.insert(agents.begin(), agents.end());
    cycleAll = cycleAgents.size() > CYCLE_AGENTS_MAX;
  }

  flushCycle();
  schedule();
  return streaming();
}


bool Keeper::report(const Outcomes& outcomes)
{
  std::vector<wire::Event> events;

  if (!streaming() || !session->outcomes(outcomes, &events)) {
    return false;
  }

  for (wire::Event& event : events) {
    for (int reason : event.outcomes().reason()) {
      const bool known = reason > 0 && reason < wire::OutcomeReason_ARRAYSIZE;
      ++counted.outcomes[known ? reason : 0];
    }

    if (submit(std::move(event)) == 0) {
      return false;
    }
  }

  return true;
}


// Sends the pending events; returns false if that ended the session.
bool Keeper::flush(bool cycle)
{
  wire::EventBatch batch;
  batch.Swap(&pending);
  batch.set_clock_ms(tick());
  batch.set_cycle(cycle);

  if (cycle && !cycleAll) {
    for (uint32_t agent : cycleAgents) {
      batch.add_agents(agent);
    }
  }

  const size_t bytes =
      BATCH_BYTES + pendingBytes + 5 * batch.agents_size() + addStats(&batch);

  counted.events += batch.events_size();
  ++counted.batches;
  pendingBytes = 0;
  sentAt = options.now();

  wire::SessionRequest request;
  session->batch(std::move(batch), sentAt, &request, pendingRevision);
  sequence = session->sequence();

  if (!link->send(std::move(request), bytes)) {
    const Link::Depth depth = link->depth();

    end(Cause::QUEUE_FULL,
        std::to_string(depth.messages) + " messages of " +
            std::to_string(depth.bytes) +
            " bytes wait to be sent; the sidecar"
            " must read them faster");
    schedule();
    return false;
  }

  return true;
}


// Adds the figures if they are due and the batch has room; returns an upper
// bound on their size.
size_t Keeper::addStats(wire::EventBatch* batch)
{
  const TimePoint now = options.now();

  if (!options.writeStats || now < statsAt ||
      pendingBytes + STATS_BYTES_MAX > batchBytesMax()) {
    return 0;
  }

  statsAt = now + options.statsInterval;
  wire::ModuleFigures* figures = batch->mutable_figures();
  write(published(), stats(), figures);
  options.writeStats(figures);
  return STATS_BYTES_MAX;
}


void Keeper::flushCycle()
{
  if (!cycleWanted || !inStep || session->cyclesUnanswered() > 0) {
    return;
  }

  ++counted.cycles;

  if (flush(true)) {
    cycleWanted = cycleAll = false;
    cycleAgents.clear();
  }
}


// Whether to send the pending events now. A busy sidecar handles larger batches
// more cheaply; an idle one finishes earlier if it starts earlier.
bool Keeper::isBatchFull() const
{
  const bool idle = session->unanswered() == 0;
  const size_t enough = idle
      ? std::min(options.batchEventsIdle, options.batchEventsMax)
      : options.batchEventsMax;
  return static_cast<size_t>(pending.events_size()) >= enough;
}


// The master's time to send with a batch; never decreases.
int64_t Keeper::tick()
{
  clockMs = std::max(clockMs, options.clockMs());
  return clockMs;
}


size_t Keeper::batchBytesMax() const
{
  return std::min(options.batchBytesMax, messageBytesMax / 2);
}


// When the next batch is due if no cycle is asked for.
TimePoint Keeper::sendAt() const
{
  if (!streaming()) {
    return TimePoint::max();
  }

  if (pending.events_size() > 0) {
    return pendingSince + options.batchDelay;
  }

  return options.heartbeat.count() > 0 && session->unanswered() == 0
      ? sentAt + options.heartbeat
      : TimePoint::max();
}


void Keeper::end(Cause cause, const std::string& reason)
{
  const TimePoint now = options.now();

  if (inStep && now - connectedAt >= options.steady) {
    failures = 0;
  }

  ++failures;
  ++counted.ends[static_cast<size_t>(cause)];
  counted.lastEnd = std::string(causeName(cause)) + ": " + reason;

  const Duration retryIn = delay(cause);
  unreported.reset(new End{cause, reason, inStep, retryIn});
  retryAt = now + retryIn;

  link->close(false);
  session.reset();
  forget();
}


Duration Keeper::delay(Cause cause) const
{
  const bool there = cause == Cause::MALFORMED || cause == Cause::REFUSED ||
      cause == Cause::OVERSIZED || cause == Cause::SNAPSHOT;

  return backoffDelay(
      failures, options.seed, there ? options.refused : options.lost);
}


void Keeper::forget()
{
  inStep = false;
  pending.Clear();
  pendingBytes = 0;
  cycleWanted = cycleAll = false;
  cycleAgents.clear();
}


void Keeper::reportEnd()
{
  const std::unique_ptr<End> end = std::move(unreported);

  if (end) {
    owner->ended(*end);
  }
}


// Sets the alarm to the earliest due time; `woken` sets it again if it fires
// too early.
void Keeper::schedule()
{
  if (!running) {
    return;
  }

  TimePoint next = unreported ? options.now() : TimePoint::max();

  next = std::min(
      next, session ? std::min(session->deadline(), sendAt()) : retryAt);

  if (next < alarm) {
    alarm = next;
    link->wakeAt(next);
  }
}


Duration Keeper::waiting() const
{
  const bool due = session && session->unanswered() > 0;

  return due ? std::chrono::duration_cast<Duration>(
                   options.now() - session->oldestUnanswered())
             : Duration(0);
}


Duration Keeper::quiet() const
{
  if (!session || session->unanswered() == 0) {
    return Duration(0);
  }

  const TimePoint since =
      std::max(session->oldestUnanswered(), session->lastHeard());
  return std::chrono::duration_cast<Duration>(options.now() - since);
}


Stats Keeper::stats() const
{
  Stats result = counted;

  result.connected = inStep;
  result.sessionAge = inStep
      ? std::chrono::duration_cast<Duration>(options.now() - connectedAt)
      : Duration(0);

  const Link::Depth depth = link->depth();
  result.queueMessages = depth.messages;
  result.queueBytes = depth.bytes;
  result.unanswered = session ? session->unanswered() : 0;

  result.roundTripP50 = roundTrips.percentile(0.50);
  result.roundTripP90 = roundTrips.percentile(0.90);
  result.roundTripP99 = roundTrips.percentile(0.99);
  result.roundTripMax = roundTrips.percentile(1.00);
  return result;
}

} // namespace session {
} // namespace allocator {
