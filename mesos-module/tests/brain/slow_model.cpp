#include "tests/brain/slow_model.hpp"

#include <algorithm>

namespace allocator {
namespace brain {

Traits traitsOf(uint32_t resourceClass)
{
  Traits traits;
  const char* const names[] = {
      "cpus", "mem", "ports", "cpus", "disk", "disk", "cpus"};
  traits.name = names[resourceClass];
  traits.type = resourceClass == PORTS ? Type::RANGES : Type::SCALAR;
  traits.revocable = resourceClass == REVOCABLE;

  if (resourceClass == CPUS_ENG || resourceClass == VOLUME ||
      resourceClass == SHARED) {
    traits.reservedRole = "eng";
    traits.depth = 1;
  }

  if (resourceClass == VOLUME || resourceClass == SHARED) {
    traits.form = wire::DISK_FORM_VOLUME;
    traits.unit = resourceClass == VOLUME ? 64000 : 32000;
    traits.shared = resourceClass == SHARED;
  }

  return traits;
}


void Heap::add(const Heap& more)
{
  for (const auto& entry : more.amounts) {
    amounts[entry.first] += entry.second;
  }
  ports.insert(more.ports.begin(), more.ports.end());
}


void Heap::take(const Heap& some)
{
  for (const auto& entry : some.amounts) {
    auto found = amounts.find(entry.first);
    if (found != amounts.end()) {
      found->second -= std::min(found->second, entry.second);
      if (found->second == 0) {
        amounts.erase(found);
      }
    }
  }

  for (uint64_t port : some.ports) {
    ports.erase(port);
  }
}


bool Heap::contains(const Heap& some) const
{
  for (const auto& entry : some.amounts) {
    auto found = amounts.find(entry.first);
    if (found == amounts.end() || found->second < entry.second) {
      return false;
    }
  }

  return std::includes(
      ports.begin(), ports.end(), some.ports.begin(), some.ports.end());
}


Heap Heap::common(const Heap& other) const
{
  Heap rest = *this;
  rest.take(other);
  Heap result = *this;
  result.take(rest);
  return result;
}


bool Heap::operator==(const Heap& that) const
{
  return amounts == that.amounts && ports == that.ports;
}


Heap Heap::of(const Parts& parts)
{
  Heap result;
  for (const Part& part : parts) {
    if (part.resourceClass != PORTS) {
      result.amounts[part.resourceClass] = part.amount;
    }
    for (const Span& span : part.spans) {
      for (uint64_t port = span.begin; port <= span.end; ++port) {
        result.ports.insert(port);
      }
    }
  }
  return result;
}


Parts Heap::toParts() const
{
  Parts parts;
  for (const auto& entry : amounts) {
    parts.push_back(Part{entry.first, entry.second, Spans()});
  }

  Part some{PORTS, 0, Spans()};
  for (uint64_t port : ports) {
    some.spans.push_back(Span{port, port});
  }
  normalize(&some.spans);
  some.amount = brain::amountOf(some.spans);
  parts.push_back(some);
  normalize(&parts);
  return parts;
}


Heap SlowModel::Agent::free() const
{
  Heap result = total;
  for (const auto& entry : held) {
    Heap taken = entry.second;
    taken.amounts.erase(SHARED);
    result.take(taken);
  }
  return result;
}


int64_t SlowModel::cpusHeld(const std::string& role) const
{
  int64_t result = 0;

  for (const auto& agent : agents) {
    for (const auto& held : agent.second.held) {
      const std::string& own = held.first.second;
      if (own != role && own.compare(0, role.size() + 1, role + "/") != 0) {
        continue;
      }
      for (uint32_t each : {CPUS, CPUS_ENG, REVOCABLE}) {
        auto cpus = held.second.amounts.find(each);
        result += cpus == held.second.amounts.end() ? 0 : cpus->second;
      }
    }
  }

  return result;
}


int64_t SlowModel::cpusConsumed(const std::string& role) const
{
  int64_t result = 0;

  for (const auto& agent : agents) {
    auto reserved = agent.second.total.amounts.find(CPUS_ENG);
    if (role == "eng" && reserved != agent.second.total.amounts.end()) {
      result += reserved->second;
    }

    for (const auto& held : agent.second.held) {
      const std::string top =
          held.first.second.substr(0, held.first.second.find('/'));
      auto cpus = held.second.amounts.find(CPUS);
      result +=
          top == role && cpus != held.second.amounts.end() ? cpus->second : 0;
    }
  }

  return result;
}


std::string
SlowModel::offer(const std::string& id, const Client& client, const Heap& given)
{
  auto agent = agents.find(id);
  auto framework = frameworks.find(client.first);

  if (paused) {
    return "an offer within a bracket";
  }
  if (agent == agents.end() || !agent->second.active) {
    return "an offer of an unknown or inactive agent";
  }
  if (framework == frameworks.end() || !framework->second.active ||
      framework->second.roles.count(client.second) == 0 ||
      framework->second.suppressed.count(client.second) > 0) {
    return "an offer to a framework that wants none";
  }
  if (given.empty() || !agent->second.free().contains(given)) {
    return "an offer of resources that are not free";
  }

  const std::string top = client.second.substr(0, client.second.find('/'));
  for (uint32_t reserved : {CPUS_ENG, VOLUME, SHARED}) {
    if (given.amounts.count(reserved) > 0 && top != "eng") {
      return "an offer of resources reserved to others";
    }
  }

  for (uint32_t whole : {VOLUME, SHARED}) {
    auto amount = given.amounts.find(whole);
    if (amount != given.amounts.end() &&
        amount->second % traitsOf(whole).unit != 0) {
      return "an offer of a part of a volume";
    }
  }

  agent->second.held[client].add(given);

  auto limit = cpusLimits.find(top);
  if (limit != cpusLimits.end() && given.amounts.count(CPUS) > 0 &&
      cpusConsumed(top) > limit->second) {
    return "an offer beyond the limit of " + top;
  }

  return std::string();
}


std::string SlowModel::inverse(
    const std::string& agent,
    const std::string& framework) const
{
  const Agent& known = agents.at(agent);
  const auto whose = frameworks.find(framework);

  if (paused || !known.active || !known.leaving) {
    return "an inverse offer of " + agent + ", which has no maintenance";
  }
  if (whose == frameworks.end() || !whose->second.active) {
    return "an inverse offer to " + framework + ", which is not active";
  }

  for (const auto& held : known.held) {
    if (held.first.first == framework) {
      return std::string();
    }
  }
  return "an inverse offer to " + framework + ", which holds nothing";
}


std::set<std::string> SlowModel::taken(const std::set<std::string>& said)
{
  std::set<std::string> result;
  for (const std::string& role : said) {
    const std::string within = "/" + role + "/";
    const bool named = within.find("//") == std::string::npos;
    if (named && role.size() <= 4096 && result.size() < 1024) {
      result.insert(role);
    }
  }
  return result;
}


std::string SlowModel::compare(const Brain& brain) const
{
  const Cluster& cluster = brain.cluster();

  if (cluster.agents.size() != agents.size() ||
      cluster.frameworks.size() != frameworks.size()) {
    return "other numbers of agents or frameworks";
  }

  for (const auto& entry : agents) {
    const brain::Agent* agent =
        cluster.agents.find(cluster.agentHandles.find(entry.first));
    if (agent == nullptr) {
      return entry.first + " is missing";
    }

    std::map<Client, Heap> held;
    for (const Allocation& allocation : agent->allocations) {
      held[{
          *cluster.frameworkHandles.id(allocation.framework),
          cluster.roles.path(allocation.role)}] = Heap::of(allocation.parts);
    }

    if (!(Heap::of(Books::total(*agent)) == entry.second.total)) {
      return "the total of " + entry.first;
    }
    if (!(Heap::of(cluster.books.free(*agent)) == entry.second.free())) {
      return "the free resources of " + entry.first;
    }
    if (!(held == entry.second.held)) {
      return "the holdings on " + entry.first;
    }
  }

  for (const auto& entry : frameworks) {
    const brain::Framework& framework =
        *cluster.frameworks.find(cluster.frameworkHandles.find(entry.first));
    std::set<std::string> roles;
    for (uint32_t role : framework.roles) {
      roles.insert(cluster.roles.path(role));
    }
    if (roles != entry.second.roles) {
      return "the roles of " + entry.first;
    }
  }

  for (const char* role : {"eng", "ops"}) {
    const uint32_t number = cluster.roles.find(role);
    int64_t consumed = 0;
    for (const auto& each : cluster.sums.consumed(number)) {
      consumed +=
          cluster.classes.names.name(each.first) == "cpus" ? each.second : 0;
    }
    if (number != 0 && consumed != cpusConsumed(role)) {
      return std::string("the quota consumption of ") + role;
    }
  }

  // Independent of the order in which roles appeared.
  for (const char* role :
       {"eng", "ops", "eng/ads", "eng/ads/a", "eng/ads/a/b"}) {
    const uint32_t number = cluster.roles.find(role);
    int64_t held = 0;
    for (const auto& each : cluster.sums.ofRole(number)) {
      held +=
          cluster.classes.names.name(each.first) == "cpus" ? each.second : 0;
    }
    if (number != 0 && held != cpusHeld(role)) {
      return std::string("the holdings below ") + role;
    }
  }

  return brain.check();
}

} // namespace brain {
} // namespace allocator {
