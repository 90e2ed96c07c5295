#include "tests/brain/world.hpp"

#include <iterator>
#include <utility>

namespace allocator {
namespace brain {
namespace {

wire::Agent info()
{
  wire::Agent result;
  result.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
  result.add_capabilities(wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE);
  return result;
}

std::string path(size_t parts)
{
  std::string result = "eng";
  for (size_t i = 1; i < parts; ++i) {
    result += "/eng";
  }
  return result;
}

} // namespace {


World::World(Choices* _choices, uint64_t _seed)
  : shadow(_seed % 5 == 0), choices(_choices), seed(_seed)
{
}


void World::begin()
{
  Initialize event;
  event.options.shadow = shadow;
  event.options.seed = seed;
  event.options.badDecisionsMax = 200;
  event.options.breakerPauseMs = 500;
  event.options.sliceAgents = 1 + draw(4);
  event.options.sliceDecisions = 1 + draw(4);
  event.options.sliceParts = draw(8) == 0 ? 1 + draw(40) : 131072;
  event.options.fallback = draw(4) > 0;
  event.options.rolesSpare = draw(2);
  event.options.rolesSentMax = draw(4);
  event.options.levelsOfAgentMax = draw(4);
  event.options.inverseWithinMs = draw(2) == 0 ? INT64_MAX : draw(2000);
  step(event);
  step(Recover());
}


void World::note(const std::string& wrong)
{
  if (fault.empty() && !wrong.empty()) {
    fault = wrong;
  }
}


void World::expect(bool right, bool done)
{
  if (right != done) {
    note(done ? "a wrong fact was booked" : "a fact was refused");
  }
}


void World::obey(Ready&& ready)
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

  for (const InverseOffer& offer : ready.inverseOffers) {
    ++inverseOffers;
    const Cluster& cluster = brain.cluster();
    note(model.inverse(
        *cluster.agentHandles.id(offer.agent),
        *cluster.frameworkHandles.id(offer.framework)));
  }

  soon = ready.soon;

  for (Message& message : ready.messages) {
    tell(std::move(message));
  }
}


// Adds input that ordinary frameworks do not send.
void World::sayOdd(AddFramework* event)
{
  const std::string odd[] = {
      "",
      "a//b",
      "/",
      "x\xFF",
      "\n",
      "eng/\xC0\xAF",
      std::string(5000, 'l'),
      path(80),
      path(2000),
      path(20000),
      "eng/" + std::string(4000, 'n') + "/b"};
  const auto some = [&]() { return odd[draw(11)]; };

  for (uint32_t i = draw(4); i > 0; --i) {
    event->roles.insert(some());
    event->suppressed.insert(some());
    (*event->info.mutable_labels())[some()] = some();
    event->minimum.emplace_back(
        draw(2) == 0 ? role() : some(),
        std::vector<Quantities>{{{some(), 1}, {some(), draw(2) - 1}}});
  }

  const uint32_t roles = draw(40) == 0 ? 1200 : 0;
  for (uint32_t i = 0; i < roles; ++i) {
    event->roles.insert("many/" + std::to_string(i));
  }

  const uint32_t names = draw(20) == 0 ? 300 : 0;
  for (uint32_t i = 0; i < names; ++i) {
    event->minimum.emplace_back(role(), std::vector<Quantities>(40));
    event->minimum.back().second[0].resize(30, {"none", 0});
    event->info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
  }

  event->info.set_user(some());
}


void World::sayOdd(wire::Agent* info)
{
  const char* const odd[] = {"", "\xFF", "\n", "name"};
  info->set_hostname(odd[draw(4)]);
  for (uint32_t i = draw(8) == 0 ? 1500 : draw(3); i > 0; --i) {
    wire::Attribute* each = info->add_attributes();
    each->set_name(odd[draw(4)]);
    each->set_value(std::string(draw(9000), 'v'));
  }
}


void World::request()
{
  const char* const odd[] = {"", "cpus", "\xFF", "cpus"};
  Request event;
  event.framework = frameworkId();
  for (uint32_t i = draw(8) == 0 ? 100 : draw(3); i > 0; --i) {
    wire::Quantities* each = event.request.add_requests();
    if (draw(2) == 0) {
      event.request.add_agent_id(draw(2) == 0 ? agentId() : odd[draw(4)]);
    }
    for (uint32_t k = draw(6); k > 0; --k) {
      each->add_name(odd[draw(4)]);
      each->add_amount(draw(2) == 0 ? INT64_MAX : draw(1000));
    }
  }
  step(event);
}


void World::addAgent()
{
  AddAgent event;
  event.agent = agentId();
  event.info = info();
  if (draw(8) == 0) {
    sayOdd(&event.info);
  }
  const bool known = model.agents.count(event.agent) > 0;
  SlowModel::Agent agent;
  agent.total = heap(false);
  event.total = parts(agent.total);

  if (draw(3) == 0) {
    // Holdings may belong to frameworks that are not added yet, and may exceed
    // the total.
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

  expect(!known, step(event));
}


void World::changeAgent()
{
  const std::string id = agentId();
  const bool known = model.agents.count(id) > 0;

  switch (draw(4)) {
    case 0:
      model.agents.erase(id);
      expect(known, step(RemoveAgent{id}));
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

  if (draw(6) == 0) {
    sayOdd(&event);
  }

  auto known = model.frameworks.find(event.framework);
  const std::set<std::string> roles = SlowModel::taken(event.roles);

  if (known == model.frameworks.end()) {
    model.frameworks[event.framework] =
        SlowModel::Framework{event.active, roles, event.suppressed};
    expect(true, step(event));
  } else {
    UpdateFramework update;
    static_cast<AddFramework&>(update) = event;
    known->second.roles = roles;
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
        auto& held = agent.second.held;
        for (auto each = held.begin(); each != held.end();) {
          const bool gone = there && each->first.first == id;
          each = gone ? held.erase(each) : std::next(each);
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
  switch (draw(5)) {
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
      // The model ignores exclusions; this only covers sending them.
      step(Exclude{{{frameworkId(), role(), agentId(), draw(3) == 0}}});
      break;
    }
    case 3: request(); break;
    default: maintain();
  }
}


// Changes an agent's maintenance, or answers an inverse offer.
void World::maintain()
{
  const std::string id = agentId();

  if (draw(3) == 0) {
    AnswerInverseOffer event;
    event.agent = id;
    event.framework = frameworkId();
    event.hasStatus = draw(4) > 0;
    event.status = draw(2) == 0 ? wire::InverseOfferUpdate::STATUS_ACCEPT
                                : wire::InverseOfferUpdate::STATUS_DECLINE;
    event.atNs = nowMs * 1000000;
    event.refuseMs = draw(2) == 0 ? -1 : draw(4000);
    step(event);
    return;
  }

  const bool scheduled = draw(4) > 0;
  auto known = model.agents.find(id);
  if (known != model.agents.end()) {
    known->second.leaving = scheduled;
  }
  step(SetUnavailability{id, Unavailability{scheduled, nowMs + draw(4000), 0}});
}


// Groups some of an answer's decisions in gangs.
wire::Gangs World::gangs(uint32_t decisions)
{
  wire::Gangs result;
  for (uint32_t first = draw(3); first < decisions; first += draw(3)) {
    const uint32_t count = 1 + draw(decisions - first);
    if (draw(2) == 0) {
      result.add_first(first);
      result.add_count(count);
    }
    first += count;
  }
  return result;
}


// Requests that frameworks leave agents, some of which are unknown.
wire::Reclaims World::reclaims()
{
  wire::Reclaims result;
  for (uint32_t i = draw(3) == 0 ? draw(4) : 0; i > 0; --i) {
    result.add_framework(1 + draw(6));
    result.add_agent(1 + draw(9));
  }
  return result;
}


void World::pause()
{
  model.paused = draw(3) == 0;
  step(Pause{model.paused});
}


// A decision: often about existing frameworks and agents, sometimes about
// unknown ones.
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
    case 12: pause(); break;
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

} // namespace brain {
} // namespace allocator {
