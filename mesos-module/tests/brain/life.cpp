#include "tests/brain/life.hpp"

#include <algorithm>
#include <vector>

namespace allocator {
namespace brain {

void Life::tell(Message&& message)
{
  switch (message.kind) {
    case Message::Kind::START: wanted = true; break;
    case Message::Kind::STOP:
      wanted = inSession = connected = asked = false;
      break;
    case Message::Kind::SNAPSHOT:
      ++slices;
      for (const wire::SnapshotChunk& chunk : message.chunks) {
        mirror.take(chunk);
      }
      mirror.revision = std::max(mirror.revision, message.revision);
      break;
    case Message::Kind::EVENT:
      if (message.revision <= mirror.revision) {
        note("marks do not ascend");
      }
      mirror.revision = message.revision;
      mirror.take(message.event);
      break;
    case Message::Kind::OUTCOMES:
      for (const wire::Outcomes& each : message.outcomes->messages) {
        mirror.take(each);
      }
      break;
    case Message::Kind::CYCLE:
      if (asked || !connected) {
        note("a cycle is asked for while one is due");
      }
      asked = true;
      break;
  }

  if (inSession) {
    note(mirror.fault);
  }
}


// A sidecar opens a session, becomes connected, or leaves.
void Life::talk()
{
  if (!inSession && wanted) {
    ++sessions;
    inSession = true;
    mirror.begin();
    Welcomed event;
    event.kindsMax = draw(2) == 0 ? 0 : 3 + draw(5);
    event.chunkBytesMax = 200 + draw(2000);
    step(event);
  } else if (inSession && !connected && mirror.complete) {
    connected = true;
    step(Connected{"sidecar", "1"});
  } else if (inSession && draw(20) == 0) {
    inSession = connected = asked = false;
    step(Ended{true, "lost", 50});
  }
}


void Life::decide()
{
  if (!asked) {
    return;
  }

  Decided event;
  std::vector<wire::Holdings> grants;
  for (uint32_t i = draw(8); i > 0; --i) {
    grants.push_back(decision());
  }

  event.decisions = mirror.decide(grants, gangs(uint32_t(grants.size())));
  event.decisions.more = draw(4) == 0;
  asked = event.decisions.more;
  if (!asked) {
    event.decisions.reclaims = reclaims();
  }
  ++answers;
  step(event);
}


void Life::wake()
{
  nowMs += draw(300);
  step(Wake{draw(8) == 0 ? 1500 : 0});
}


// Runs until nothing is pending; then the sidecar must know everything.
void Life::settle()
{
  model.paused = false;
  step(Pause{false});
  for (int i = 0; soon && i < 1000; ++i) {
    step(Wake{0});
  }

  if (inSession && mirror.complete) {
    note(mirror.compare(&brain));
  }
}

} // namespace brain {
} // namespace allocator {
