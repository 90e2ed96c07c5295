#include "tests/brain/mirror.hpp"

#include <algorithm>
#include <utility>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {

void Mirror::begin()
{
  const uint64_t number = session;
  const uint64_t last = revision;
  *this = Mirror();
  session = number + 1;
  revision = last;
}


void Mirror::fail(const std::string& what)
{
  fault = fault.empty() ? what : fault;
}


// A sidecar accepts each path once, after its parent, and of limited depth.
void Mirror::bind(const wire::Role& role)
{
  const std::string& path = role.path();
  const size_t slash = path.rfind('/');
  if (!Roles::isPath(path) || !isText(path) || !paths.insert(path).second ||
      (slash != std::string::npos && paths.count(path.substr(0, slash)) == 0) ||
      std::count(path.begin(), path.end(), '/') > 63) {
    fail("role '" + path + "' has a path that no sidecar accepts");
  }

  if (!roles.emplace(role.role(), role.path()).second) {
    fail("role " + role.path() + " is bound twice");
  }
}


void Mirror::judge(const wire::Quantities& quantities)
{
  std::set<std::string> names;
  for (const std::string& name : quantities.name()) {
    if (name.empty() || !isText(name) || !names.insert(name).second) {
      fail("amounts by names that no sidecar accepts");
    }
  }
}


void Mirror::judge(const wire::Framework& framework)
{
  std::set<uint32_t> named;
  for (const wire::MinimumResources& minimum : framework.minimum()) {
    if (roles.count(minimum.role()) == 0 ||
        !named.insert(minimum.role()).second) {
      fail("a minimum of an unknown role, or two of one");
    }
    for (const wire::Quantities& each : minimum.any_of()) {
      judge(each);
    }
  }

  for (const wire::SetAside& row : framework.set_aside()) {
    if (row.text().size() > 200 || !isText(row.text())) {
      fail("a row about ignored input is too long");
    }
  }

  if (framework.set_aside_size() > 16 || framework.roles_size() > 1024) {
    fail("a framework with too much input");
  }
}


void Mirror::change(Row* row, uint32_t kind, int64_t amount)
{
  if (kind >= kinds.size()) {
    fail("kind " + std::to_string(kind) + " is not bound");
  }

  int64_t& sum = (*row)[kind];
  sum += amount;
  if (sum < 0) {
    fail("an amount is negative");
  } else if (sum == 0) {
    row->erase(kind);
  }
}


void Mirror::add(const wire::Holdings& rows, int64_t sign)
{
  for (int i = 0; i < rows.framework_size(); ++i) {
    if (roles.count(rows.role(i)) == 0 ||
        capacities.count(rows.agent(i)) == 0) {
      fail("a holding names an unknown role or agent");
    }

    const auto key =
        std::make_tuple(rows.framework(i), rows.role(i), rows.agent(i));
    for (int k = 0; k < rows.kind_size(); ++k) {
      change(
          &held[key],
          rows.kind(k),
          sign * rows.amount(i * rows.kind_size() + k));
    }
    if (held[key].empty()) {
      held.erase(key);
    }
  }
}


void Mirror::take(const wire::SnapshotChunk& chunk)
{
  kinds.resize(kinds.size() + chunk.kinds_size());
  for (const wire::Role& role : chunk.roles()) {
    bind(role);
  }

  for (const wire::Framework& framework : chunk.frameworks()) {
    judge(framework);
    if (!frameworks.emplace(framework.framework(), true).second) {
      fail("a framework is added twice");
    }
  }

  for (const wire::Agent& agent : chunk.agents()) {
    Row& capacity = capacities[agent.agent()];
    for (int k = 0; k < agent.capacity().kind_size(); ++k) {
      change(&capacity, agent.capacity().kind(k), agent.capacity().amount(k));
    }
  }

  add(chunk.holdings(), 1);
  complete = complete || chunk.last();
}


void Mirror::take(const wire::Event& event)
{
  if (!complete) {
    fail("an event before the snapshot is complete");
  }

  kinds.resize(kinds.size() + event.define().kinds_size());
  for (const wire::Role& role : event.define().roles()) {
    bind(role);
  }

  auto replace = [this](uint32_t agent, const wire::Amounts& amounts) {
    capacities[agent].clear();
    for (int k = 0; k < amounts.kind_size(); ++k) {
      change(&capacities[agent], amounts.kind(k), amounts.amount(k));
    }
  };

  switch (event.event_case()) {
    case wire::Event::kAddAgent:
      replace(event.add_agent().agent(), event.add_agent().capacity());
      break;
    case wire::Event::kUpdateAgent:
      replace(event.update_agent().agent(), event.update_agent().capacity());
      break;
    case wire::Event::kHold: add(event.hold(), 1); break;
    case wire::Event::kRelease: add(event.release().released(), -1); break;
    case wire::Event::kUpdateFramework: judge(event.update_framework()); break;
    case wire::Event::kRequest:
      if (event.request().agent_id_size() > 0 &&
          event.request().agent_id_size() != event.request().requests_size()) {
        fail("a request has agents for some of its rows");
      }
      for (const wire::Quantities& each : event.request().requests()) {
        judge(each);
      }
      break;
    case wire::Event::kAddFramework:
      judge(event.add_framework());
      if (!frameworks.emplace(event.add_framework().framework(), true).second) {
        fail("a framework is added twice");
      }
      break;
    case wire::Event::kRemoveFramework: {
      const uint32_t gone = event.remove_framework().framework();
      if (frameworks.erase(gone) == 0) {
        fail("an unknown framework is removed");
      }
      for (auto row = held.begin(); row != held.end();) {
        row =
            std::get<0>(row->first) == gone ? held.erase(row) : std::next(row);
      }
      break;
    }
    case wire::Event::kRemoveAgent: {
      const uint32_t gone = event.remove_agent().agent();
      if (capacities.erase(gone) == 0) {
        fail("an unknown agent is removed");
      }
      for (auto row = held.begin(); row != held.end();) {
        row =
            std::get<2>(row->first) == gone ? held.erase(row) : std::next(row);
      }
      break;
    }
    case wire::Event::kUpdateAllocation: {
      const wire::UpdateAllocation& update = event.update_allocation();
      auto apply = [&](const wire::Amounts& amounts, int64_t sign) {
        for (int k = 0; k < amounts.kind_size(); ++k) {
          const int64_t amount = sign * amounts.amount(k);
          change(&capacities[update.agent()], amounts.kind(k), amount);
          if (update.framework() != 0) {
            change(
                &held[std::make_tuple(
                    update.framework(), update.role(), update.agent())],
                amounts.kind(k),
                amount);
          }
        }
      };
      apply(update.consumed(), -1);
      apply(update.converted(), 1);
      for (auto row = held.begin(); row != held.end();) {
        row = row->second.empty() ? held.erase(row) : std::next(row);
      }
      break;
    }
    default: break;
  }
}


session::Decisions Mirror::decide(
    const std::vector<wire::Holdings>& grants,
    const wire::Gangs& gangs)
{
  session::Decisions result;
  result.session = session;
  result.revision = revision;
  result.cycle = 1;
  result.first = nextDecision;
  result.gangs = gangs;

  for (int row = 0; row < gangs.first_size(); ++row) {
    const uint64_t first = nextDecision + gangs.first(row);
    for (uint32_t i = 0; i < gangs.count(row); ++i) {
      gangOf[first + i] = first;
    }
  }

  for (const wire::Holdings& grant : grants) {
    *result.grants.Add() = grant;
    open[nextDecision++] = grant;
  }

  return result;
}


void Mirror::take(const wire::Outcomes& outcomes)
{
  uint64_t number = outcomes.first_decision();
  int partial = 0;

  for (int reason : outcomes.reason()) {
    checkGang(number, reason);
    auto decision = open.find(number++);
    if (decision == open.end() || decision != open.begin()) {
      fail("an outcome of a decision that is not the oldest");
      return;
    }

    wire::Holdings given = decision->second;
    open.erase(decision);

    if (reason == wire::OUTCOME_REASON_PARTIAL) {
      if (outcomes.kind_size() != given.kind_size()) {
        fail("an outcome has other kinds than its decision");
        return;
      }
      for (int k = 0; k < given.kind_size(); ++k) {
        given.set_amount(
            k, outcomes.amount(partial * outcomes.kind_size() + k));
      }
      ++partial;
    }

    if (reason == wire::OUTCOME_REASON_OFFERED ||
        reason == wire::OUTCOME_REASON_PARTIAL) {
      add(given, 1);
    }
  }
}


// All decisions of a gang are offered exactly, or none is.
void Mirror::checkGang(uint64_t number, int reason)
{
  auto gang = gangOf.find(number);

  if (gang == gangOf.end()) {
    return;
  }

  const bool given = reason == wire::OUTCOME_REASON_OFFERED;
  if (reason == wire::OUTCOME_REASON_PARTIAL ||
      offered.emplace(gang->second, given).first->second != given) {
    fail("a part of a gang was offered");
  }

  gangOf.erase(gang);
}


std::string Mirror::compare(Brain* brain) const
{
  const Cluster& cluster = brain->cluster();
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Row> real;

  for (uint32_t number = 0; number < cluster.agents.end(); ++number) {
    const Agent* agent = cluster.agents.find(number);
    if (agent == nullptr) {
      continue;
    }

    Row capacity;
    for (const Part& part : Books::total(*agent)) {
      if (cluster.kinds.find(part.resourceClass) != Kinds::NONE) {
        capacity[cluster.kinds.find(part.resourceClass)] += part.amount;
      }
    }
    auto mine = capacities.find(number);
    if (mine == capacities.end() || mine->second != capacity) {
      return "the sidecar knows another capacity of " + agent->id;
    }

    for (const Allocation& allocation : agent->allocations) {
      const uint32_t handle = cluster.roles.knownHandle(allocation.role);
      for (const Part& part : allocation.parts) {
        // Resources without a kind are not sent.
        if (cluster.kinds.find(part.resourceClass) != Kinds::NONE) {
          real[std::make_tuple(allocation.framework, handle, number)]
              [cluster.kinds.find(part.resourceClass)] += part.amount;
        }
      }
    }
  }

  for (const auto& row : real) {
    auto mine = held.find(row.first);
    if (mine == held.end() || mine->second != row.second) {
      return "the sidecar knows other holdings on agent " +
          std::to_string(std::get<2>(row.first));
    }
  }

  if (real.size() != held.size()) {
    return "the sidecar knows holdings that no longer exist";
  }

  return !open.empty() ? "an outcome is missing" : fault;
}

} // namespace brain {
} // namespace allocator {
