#include <algorithm>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "mirror.hpp"
#include "slow_model.hpp"

// Thousands of random calls, with sidecars that decide at random, sensibly
// or not, come and go. After each step the brain's books are compared with
// those of a slow model, and what it has sent with what a sidecar that
// believes it must know.

namespace allocator {
namespace brain {
namespace {

class World
{
public:
  explicit World(uint64_t seed) : random(seed), shadow(seed % 5 == 0)
  {
    Initialize event;
    event.options.shadow = shadow;
    event.options.seed = seed;
    event.options.badDecisionsMax = 200;
    event.options.breakerPauseMs = 500;
    event.options.sliceAgents = 1 + draw(4);
    event.options.sliceDecisions = 1 + draw(4);
    event.options.fallback = draw(4) > 0;
    event.options.rolesSpare = draw(2);
    event.options.rolesSentMax = draw(4);
    step(event);
    step(Recover());
  }

  uint32_t draw(uint32_t end) { return random() % end; }

  // Does something; false where something is wrong.
  void turn();

  std::string fault;
  uint64_t offers = 0;
  uint64_t answers = 0;
  uint64_t sessions = 0;
  uint64_t slices = 0;

  uint64_t compared() const
  {
    const Comparison::Figures figures = brain.counts().compared;
    return figures.same + figures.other + figures.none;
  }

private:
  template <typename Event>
  bool step(const Event& event)
  {
    const std::string refused = brain.step(event, nowMs);
    obey(brain.ready());
    note(model.compare(brain));
    return refused.empty();
  }

  void obey(const Ready& ready);
  void note(const std::string& wrong);

  std::string agentId() { return "agent" + std::to_string(draw(8)); }
  std::string frameworkId() { return "framework" + std::to_string(draw(5)); }

  std::string role()
  {
    const char* const roles[] = {"eng", "ops", "eng/ads"};
    return roles[draw(3)];
  }

  Heap heap(bool small);
  Parts parts(const Heap& heap);

  void addAgent();
  void changeAgent();
  void addFramework();
  void changeFramework();
  void changeSettings();
  void comeBack();
  void convert();
  void convertFree();
  void offerBeside();
  void talk();
  void decide();
  wire::Holdings decision();
  void wake();
  void settle();

  std::mt19937_64 random;
  const bool shadow; // Another allocator decides.
  Brain brain;
  SlowModel model;
  Mirror mirror;

  int64_t nowMs = 0;
  int64_t wakeMs = 0;
  bool soon = false;
  bool wanted = false;    // A session.
  bool inSession = false; // Welcomed.
  bool connected = false;
  bool asked = false;
};


void World::note(const std::string& wrong)
{
  if (fault.empty() && !wrong.empty()) {
    fault = wrong;
  }
}


void World::obey(const Ready& ready)
{
  for (const Offer& offer : ready.offers) {
    ++offers;
    const Cluster& cluster = brain.cluster();
    note(model.offer(
        *cluster.agentHandles.id(offer.agent),
        {*cluster.frameworkHandles.id(offer.framework),
         cluster.roles.path(offer.role)},
        Heap::of(offer.parts)));
  }

  for (const Message& message : ready.messages) {
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
        mirror.mark = std::max(mirror.mark, message.mark);
        break;
      case Message::Kind::EVENT:
        if (message.mark <= mirror.mark) {
          note("marks do not ascend");
        }
        mirror.mark = message.mark;
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
  }

  if (inSession) {
    note(mirror.fault);
  }

  soon = ready.soon;
  wakeMs = ready.wakeMs;
}


Heap World::heap(bool small)
{
  Heap result;
  const uint32_t size = small ? 4 : 40;

  for (uint32_t piece : {CPUS, MEM, CPUS_ENG, REVOCABLE}) {
    if (draw(2) == 0) {
      result.amounts[piece] = 1 + draw(size * 1000);
    }
  }

  for (uint32_t piece : {VOLUME, SHARED}) {
    if (draw(4) == 0) {
      result.amounts[piece] = traitsOf(piece).unit;
    }
  }

  for (uint32_t port = 1; port <= 12; ++port) {
    if (draw(small ? 4 : 2) == 0) {
      result.ports.insert(port);
    }
  }

  return result;
}


// Defines the pieces that the brain has forgotten.
Parts World::parts(const Heap& heap)
{
  for (uint32_t piece = 0; piece < PIECES; ++piece) {
    if (!brain.cluster().pieces.defined(piece)) {
      brain.step(DefinePiece{piece, traitsOf(piece)}, nowMs);
    }
  }

  return heap.toParts();
}


wire::Agent info()
{
  wire::Agent result;
  result.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
  result.add_capabilities(wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE);
  return result;
}


void World::addAgent()
{
  AddAgent event;
  event.agent = agentId();
  event.info = info();
  const bool known = model.agents.count(event.agent) > 0;
  SlowModel::Agent agent;
  agent.total = heap(false);
  event.total = parts(agent.total);

  if (draw(3) == 0) {
    // Also of frameworks that are not there yet, and more than there is.
    const SlowModel::Client client{frameworkId(), role()};
    const Heap used = heap(true);
    event.used.push_back(Use{client.first, client.second, parts(used)});
    if (!used.empty()) {
      agent.held[client] = used;
    }
  }

  if (!known) {
    model.agents[event.agent] = agent;
  }

  EXPECT_EQ(!known, step(event));
}


void World::changeAgent()
{
  const std::string id = agentId();
  const bool known = model.agents.count(id) > 0;

  switch (draw(4)) {
    case 0:
      model.agents.erase(id);
      EXPECT_EQ(known, step(RemoveAgent{id}));
      break;
    case 1: {
      UpdateAgent event;
      event.agent = id;
      event.info = info();
      event.hasTotal = true;
      event.newAttributes = event.newInfo = draw(2) == 0;
      const Heap total = heap(false);
      event.total = parts(total);
      if (known) {
        model.agents[id].total = total;
      }
      step(event);
      break;
    }
    default: {
      const bool active = draw(3) > 0;
      if (known) {
        model.agents[id].active = active;
      }
      step(ActivateAgent{id, active});
    }
  }
}


void World::addFramework()
{
  AddFramework event;
  event.framework = frameworkId();
  event.roles = {role(), role()};
  event.active = draw(4) > 0;
  event.info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);

  for (wire::FrameworkCapability capability :
       {wire::FRAMEWORK_CAPABILITY_SHARED_RESOURCES,
        wire::FRAMEWORK_CAPABILITY_REVOCABLE_RESOURCES}) {
    if (draw(2) == 0) {
      event.info.add_capabilities(capability);
    }
  }

  if (draw(2) == 0) {
    event.suppressed = {*event.roles.begin()};
  }

  auto known = model.frameworks.find(event.framework);

  if (known == model.frameworks.end()) {
    model.frameworks[event.framework] =
        SlowModel::Framework{event.active, event.roles, event.suppressed};
    EXPECT_TRUE(step(event));
  } else {
    UpdateFramework update;
    static_cast<AddFramework&>(update) = event;
    known->second.roles = event.roles;
    known->second.suppressed = event.suppressed;
    step(update);
  }
}


void World::changeFramework()
{
  const std::string id = frameworkId();
  auto known = model.frameworks.find(id);
  const bool there = known != model.frameworks.end();

  switch (draw(5)) {
    case 0:
      for (auto& agent : model.agents) {
        for (const char* each : {"eng", "ops", "eng/ads"}) {
          agent.second.held.erase({there ? id : "", each});
        }
      }
      model.frameworks.erase(id);
      step(RemoveFramework{id});
      break;
    case 1:
    case 2: {
      const bool active = draw(3) > 0;
      if (there) {
        known->second.active = active;
      }
      step(ActivateFramework{id, active});
      break;
    }
    case 3:
      if (there) {
        known->second.suppressed = known->second.roles;
      }
      step(Suppress{id, {}});
      break;
    default:
      if (there) {
        known->second.suppressed.clear();
      }
      step(Revive{id, {}});
  }
}


void World::changeSettings()
{
  switch (draw(4)) {
    case 0: {
      const std::string top = draw(2) == 0 ? "eng" : "ops";
      SetQuota event;
      event.role = top;
      model.cpusLimits.erase(top);
      if (draw(3) > 0) {
        const int64_t limit = draw(60000);
        event.limits = {{"cpus", limit}};
        event.guarantees = {{"cpus", draw(2) * limit / 2}};
        model.cpusLimits[top] = limit;
      }
      step(event);
      break;
    }
    case 1: step(SetWeights{{{role(), 0.5 + draw(4)}}}); break;
    case 2: {
      // Whom it excludes is not modelled, but how it is sent is.
      step(Exclude{{{frameworkId(), role(), agentId(), draw(3) == 0}}});
      break;
    }
    default:
      step(
          SetUnavailability{agentId(), Unavailability{draw(2) == 0, nowMs, 0}});
  }
}


void World::comeBack()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  Release event;
  event.agent = id;
  event.refuseMs = draw(2) == 0 ? -1 : draw(4000);
  event.allocated = draw(2) == 0;

  SlowModel::Client client{frameworkId(), role()};
  Heap given = heap(true);

  if (agent != model.agents.end() && !agent->second.held.empty()) {
    auto held = agent->second.held.begin();
    std::advance(held, draw(agent->second.held.size()));
    client = held->first;
    given = draw(2) == 0 ? held->second : given;
  }

  if (draw(3) == 0) {
    step(Transition{id, {{client.second, parts(given)}}});
  }

  event.framework = client.first;
  event.parts = {{client.second, parts(given)}};

  if (agent != model.agents.end()) {
    auto held = agent->second.held.find(client);
    if (held != agent->second.held.end()) {
      held->second.take(given);
      if (held->second.empty()) {
        agent->second.held.erase(held);
      }
    }
  }

  step(event);
}


// The other allocator gives what is free, mostly; or what somebody has, or
// whom it does not suit: it knew less by then.
void World::offerBeside()
{
  const std::string id = agentId();
  const SlowModel::Client client{frameworkId(), role()};
  Heap given = heap(true);
  auto agent = model.agents.find(id);
  const bool known = model.frameworks.count(client.first) > 0;

  if (agent != model.agents.end() && draw(4) > 0) {
    given = agent->second.free();
  }

  OfferedBeside event;
  event.framework = client.first;
  event.rows = {{id, client.second, parts(given)}};

  if (known && agent != model.agents.end() && !given.empty()) {
    agent->second.held[client].add(given);
  }

  EXPECT_EQ(known, step(event));
}


// Reserves cpus, frees reserved ones, makes copies of a shared volume.
void World::convert()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  if (agent == model.agents.end() || agent->second.held.empty()) {
    return;
  }

  auto held = agent->second.held.begin();
  std::advance(held, draw(agent->second.held.size()));

  Heap consumed;
  Heap converted;
  const uint32_t from = draw(2) == 0 ? CPUS : CPUS_ENG;
  const int64_t amount = 1 + draw(3000);

  if (draw(4) == 0) {
    converted.amounts[SHARED] = traitsOf(SHARED).unit;
  } else {
    consumed.amounts[from] = amount;
    converted.amounts[from == CPUS ? CPUS_ENG : CPUS] = amount;
  }

  ConvertHeld event;
  event.agent = id;
  event.framework = held->first.first;
  event.role = held->first.second;
  event.offered = parts(held->second);
  event.conversions = {{parts(consumed), parts(converted)}};

  const bool fits = held->second.contains(consumed) &&
      (consumed.empty() || agent->second.total.contains(consumed));

  if (fits) {
    held->second.take(consumed);
    held->second.add(converted);
    if (!consumed.empty()) {
      agent->second.total.take(consumed);
      agent->second.total.add(converted);
    }
  }

  EXPECT_EQ(fits, step(event));
}


void World::convertFree()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  if (agent == model.agents.end()) {
    return;
  }

  Heap consumed;
  Heap converted;
  const int64_t amount = 1 + draw(9000);
  consumed.amounts[CPUS] = amount;
  converted.amounts[CPUS_ENG] = amount;

  const bool fits = agent->second.free().contains(consumed);
  if (fits) {
    agent->second.total.take(consumed);
    agent->second.total.add(converted);
  }

  EXPECT_EQ(
      fits,
      step(ConvertFree{id, Conversion{parts(consumed), parts(converted)}}));
}


// A sidecar comes, is ready, or goes.
void World::talk()
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


// Often something that is there; sometimes nonsense.
wire::Holdings World::decision()
{
  const Cluster& cluster = brain.cluster();
  wire::Holdings row;
  row.add_framework(1 + draw(6));
  row.add_role(1 + draw(4));
  row.add_agent(1 + draw(9));

  const uint32_t kinds = static_cast<uint32_t>(cluster.kinds.size());
  for (uint32_t kind = 0; kind < kinds + 1; ++kind) {
    if (draw(2) == 0) {
      row.add_kind(kind);
      row.add_amount(draw(3) == 0 ? int64_t(1) << 40 : draw(20000));
    }
  }

  if (row.kind_size() == 0) {
    row.add_kind(0);
    row.add_amount(1000);
  }

  return row;
}


void World::decide()
{
  if (!asked) {
    return;
  }

  Decided event;
  std::vector<wire::Holdings> grants;
  for (uint32_t i = draw(8); i > 0; --i) {
    grants.push_back(decision());
  }

  event.decisions = mirror.decide(grants);
  event.decisions.more = draw(4) == 0;
  asked = event.decisions.more;
  ++answers;
  step(event);
}


void World::wake()
{
  nowMs += draw(300);
  step(Wake{draw(8) == 0 ? 1500 : 0});
}


// The sidecar knows all when nothing waits.
void World::settle()
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


void World::turn()
{
  switch (draw(16)) {
    case 0: addAgent(); break;
    case 1: changeAgent(); break;
    case 2: addFramework(); break;
    case 3: changeFramework(); break;
    case 4: changeSettings(); break;
    case 5:
    case 6: comeBack(); break;
    case 7: convert(); break;
    case 8: convertFree(); break;
    case 9: talk(); break;
    case 10:
    case 11: decide(); break;
    case 12:
      model.paused = draw(3) == 0;
      step(Pause{model.paused});
      break;
    case 13: settle(); break;
    case 14:
    case 15:
      if (shadow) {
        offerBeside();
        break;
      }
      // Fall through.
    default: wake();
  }
}


// SEED=... plays one life, ROUNDS=... so many.
TEST(RandomTest, TheBooksAddUpWhateverHappens)
{
  const char* one = std::getenv("SEED");
  const char* many = std::getenv("ROUNDS");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const uint64_t lives =
      many == nullptr ? 60 : std::strtoull(many, nullptr, 10);

  uint64_t offers = 0;
  uint64_t answers = 0;
  uint64_t sessions = 0;
  uint64_t slices = 0;
  uint64_t compared = 0;

  for (uint64_t seed = first; seed < first + (one == nullptr ? lives : 1);
       ++seed) {
    World world(seed);
    for (int turn = 0; turn < 600; ++turn) {
      world.turn();
      ASSERT_EQ("", world.fault) << "SEED=" << seed << ", turn " << turn;
    }

    offers += world.offers;
    answers += world.answers;
    sessions += world.sessions;
    slices += world.slices;
    compared += world.compared();
  }

  // It was not idle.
  EXPECT_GT(offers, lives * 10);
  EXPECT_GT(answers, lives * 5);
  EXPECT_GT(sessions, lives);
  EXPECT_GT(slices, sessions);
  EXPECT_GT(compared, 0u);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
