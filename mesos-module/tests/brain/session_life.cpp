#include "tests/brain/session_life.hpp"

#include <utility>
#include <vector>

#include "tests/spoil.hpp"

namespace allocator {
namespace brain {

using session::Duration;
using session::TimePoint;

SessionLife::SessionLife(Choices* _choices, uint64_t seed)
  : World(_choices, seed), choices(_choices)
{
  std::unique_ptr<session::MemoryLink> memory(
      new session::MemoryLink(4 + draw(8), 1 << 20));
  link = memory.get();
  keeper.reset(new session::Keeper(settings(), this, std::move(memory)));
  begin();
}


session::KeeperOptions SessionLife::settings()
{
  session::KeeperOptions result;
  result.now = [this]() { return now(); };
  result.clockMs = [this]() { return cycleMs < 0 ? nowMs : cycleMs; };
  result.writeStats = [](wire::ModuleFigures*) {};
  result.deadlines.welcome = Duration(1000);
  result.deadlines.snapshot = Duration(2000);
  result.deadlines.answer = Duration(1000);
  result.limits.decisionsMax = 8 + draw(8);
  result.batchEventsMax = 1 + draw(16);
  result.batchEventsIdle = 1 + draw(4);
  result.refused = session::Backoff{Duration(100), Duration(1000)};
  return result;
}


TimePoint SessionLife::now() const
{
  return TimePoint() + Duration(1000000 + nowMs);
}


void SessionLife::tell(Message&& message)
{
  switch (message.kind) {
    case Message::Kind::START: keeper->start(); break;
    case Message::Kind::STOP: keeper->stop(); break;
    case Message::Kind::SNAPSHOT:
      ++slices;
      keeper->snapshot(std::move(message.chunks), message.revision);
      break;
    case Message::Kind::EVENT:
      keeper->submit(std::move(message.event), message.revision);
      break;
    case Message::Kind::OUTCOMES: keeper->report(*message.outcomes); break;
    case Message::Kind::CYCLE:
      cycleMs = message.clockMs;
      keeper->cycle(message.agents);
      cycleMs = -1;
      break;
  }
}


void SessionLife::welcomed(const wire::Welcome& welcome, size_t chunkBytesMax)
{
  const size_t bytes = draw(2) == 0 ? chunkBytesMax : 200 + draw(2000);
  step(Welcomed{welcome.kinds_max(), bytes});
}


void SessionLife::connected(const wire::Welcome& welcome)
{
  ++sessions;
  step(Connected{welcome.sidecar_id(), welcome.sidecar_version()});
}


void SessionLife::decided(session::Decisions&& decisions)
{
  ++answers;
  note(session::unsound(decisions));
  step(Decided{std::move(decisions)});
}


void SessionLife::ended(const session::Keeper::End& end)
{
  ++ends;
  const std::string cause = session::causeName(end.cause);
  if (cause.empty() || end.reason.empty()) {
    note("a session ended, and nobody knows why");
  }
  step(Ended{end.wasConnected, cause + ": " + end.reason, end.retryIn.count()});
}


// Advances time, and fires alarms when they are due.
void SessionLife::pass(int64_t ms)
{
  const int64_t end = nowMs + ms;
  int rings = 0;

  while (link->alarm <= TimePoint() + Duration(1000000 + end)) {
    if (link->alarm > now()) {
      nowMs =
          std::chrono::duration_cast<Duration>(link->alarm.time_since_epoch())
              .count() -
          1000000;
    }
    link->alarm = TimePoint::max();
    link->listener->woken();
    if (++rings > 10000) {
      note("the alarm rings without end");
      return;
    }
  }

  nowMs = end;
}


void SessionLife::wake()
{
  pass(draw(8) == 0 ? 1500 : draw(300));
  step(Wake{keeper->waiting().count(), keeper->quiet().count()});
}


// The sidecar reads the next message and answers it, without decisions if
// `still`. Returns false if there is no message.
bool SessionLife::read(bool still)
{
  wire::SessionRequest request;
  if (!link->isOpen || !link->queue.pop(&request)) {
    return false;
  }

  if (stream != link->streams) {
    stream = link->streams;
    sidecar = session::ModelSidecar();
    sidecar.kindsMax = draw(2) == 0 ? 0 : 3 + draw(5);
    mirror.begin();
    said.clear();
    spoilt = false;
  }

  sidecar.partsPerCycle = still ? 1 : 1 + static_cast<int>(draw(3));
  sidecar.decisionsPerCycle = still ? 0 : static_cast<int>(draw(4));
  if (sidecar.decisionsPerCycle == 0) {
    sidecar.partsPerCycle = 1;
  }

  std::vector<wire::SessionResponse> all = sidecar.take(request);
  believe(request);

  for (wire::SessionResponse& answer : all) {
    fill(&answer);
    said.push_back(std::move(answer));
  }

  if (!spoilt) {
    note(sidecar.fault);
    note(mirror.fault);
  }
  return true;
}


void SessionLife::believe(const wire::SessionRequest& request)
{
  if (request.has_snapshot()) {
    mirror.take(request.snapshot());
  }

  for (const wire::Event& event : request.events().events()) {
    if (event.has_outcomes()) {
      mirror.take(event.outcomes());
    } else {
      mirror.take(event);
    }
  }
}


// Replaces the model's decisions by random ones.
void SessionLife::fill(wire::SessionResponse* answer)
{
  if (!answer->has_decisions() || answer->decisions().cycle() == 0) {
    return;
  }

  wire::DecisionBatch* batch = answer->mutable_decisions();
  std::vector<wire::Holdings> grants;
  for (wire::Holdings& grant : *batch->mutable_grants()) {
    grants.push_back(decision());
    grant = grants.back();
  }
  *batch->mutable_gangs() = gangs(uint32_t(grants.size()));
  mirror.decide(grants, batch->gangs());

  if (!batch->more()) {
    *batch->mutable_reclaims() = reclaims();
  }
}


void SessionLife::talk()
{
  uint32_t left = 1 + draw(4);
  while (left > 0 && read(false)) {
    --left;
  }
}


// The module receives the next answer, possibly corrupted.
void SessionLife::decide()
{
  if (said.empty()) {
    talk();
  }
  if (said.empty() || stream != link->streams) {
    return;
  }

  wire::SessionResponse answer = std::move(said.front());
  said.pop_front();
  std::string bytes = answer.SerializeAsString();

  switch (draw(24)) {
    case 0:
    case 1:
      spoilt = true;
      bytes = session::spoil(answer, choices);
      break;
    case 2:
      spoilt = true;
      said.push_front(answer);
      break;
    case 3:
      spoilt = true;
      bytes = session::nonsense(64, choices);
      break;
    case 4:
      spoilt = true;
      if (link->isOpen) {
        link->isOpen = false;
        link->listener->lost("reset", false);
      }
      return;
    default: break;
  }

  say(bytes);
}


void SessionLife::say(const std::string& bytes)
{
  wire::SessionResponse response;

  if (!link->isOpen) {
    return;
  }

  if (response.ParseFromString(bytes)) {
    link->listener->received(std::move(response));
  } else {
    link->isOpen = false;
    link->listener->lost("garbage", true);
  }
}


// Runs until nothing is pending; then the sidecar must know everything.
void SessionLife::settle()
{
  model.paused = false;
  step(Pause{false});

  bool quiet = false;
  for (int i = 0; !quiet && i < 100; ++i) {
    pass(150); // Flushes pending events.
    quiet = !soon;
    for (int k = 0; soon && k < 1000; ++k) {
      step(Wake{0});
    }
    while (read(true)) {
      quiet = false;
    }
    while (!said.empty() && stream == link->streams) {
      const std::string bytes = said.front().SerializeAsString();
      said.pop_front();
      say(bytes);
      quiet = false;
    }
  }

  if (quiet && keeper->connected() && !spoilt && stream == link->streams) {
    ++settled;
    note(mirror.compare(&brain));
  }
}

} // namespace brain {
} // namespace allocator {
