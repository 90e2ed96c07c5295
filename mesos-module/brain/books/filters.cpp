#include "brain/books/filters.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace allocator {
namespace brain {
std::pair<size_t, size_t>
Filters::range(const Agent& agent, uint32_t framework, uint32_t role)
{
  const uint64_t key = clientKey(framework, role);
  const auto& all = agent.filters;

  auto begin = std::lower_bound(
      all.begin(),
      all.end(),
      key,
      [](const OfferFilter& each, uint64_t wanted) {
        return clientKey(each.framework, each.role) < wanted;
      });

  auto end = begin;
  while (end != all.end() && clientKey(end->framework, end->role) == key) {
    ++end;
  }

  return {begin - all.begin(), end - all.begin()};
}


bool Filters::lasts(const OfferFilter& filter, int64_t nowMs) const
{
  auto client = clients.find(clientKey(filter.framework, filter.role));

  return filter.expiresMs >= nowMs && client != clients.end() &&
      client->second.generation == filter.generation;
}


void Filters::add(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    Parts refused,
    int64_t refuseMs,
    int64_t nowMs)
{
  if (refuseMs <= 0 || refused.empty()) {
    return;
  }

  const int64_t expiresMs = nowMs + std::max(refuseMs - 1, intervalMs);
  Agent* agent = agents->edit(number);

  // One that another contains and outlives says nothing: so a framework
  // that declines the same for ever does not make the list grow.
  const std::pair<size_t, size_t> old = range(*agent, framework, role);
  sweep(agent, old.first, old.second, [&](const OfferFilter& each) {
    return !lasts(each, nowMs) ||
        (each.expiresMs <= expiresMs && contains(refused, *each.parts));
  });

  Client& client = clients[clientKey(framework, role)];
  if (client.generation == 0) {
    client.generation = ++generations;
  }

  for (const Part& part : refused) {
    classes->use(part.resourceClass);
  }

  const size_t place = range(*agent, framework, role).second;
  agent->filters.insert(
      agent->filters.begin() + place,
      OfferFilter{
          framework,
          role,
          client.generation,
          expiresMs,
          std::make_shared<const Parts>(std::move(refused))});

  ++client.count;
  ++count;
  ++records;
  expiries.push(Expiry{expiresMs, number});

  // It must not grow, either.
  if (expiries.size() > 2 * records + 1024) {
    rebuildExpiries();
  }
}


void Filters::sweep(Agent* agent, size_t begin, size_t end, const Gone& gone)
{
  auto& all = agent->filters;
  size_t kept = begin;

  for (size_t i = begin; i < end; ++i) {
    if (!gone(all[i])) {
      std::swap(all[kept++], all[i]);
      continue;
    }

    auto client = clients.find(clientKey(all[i].framework, all[i].role));
    if (client != clients.end() &&
        client->second.generation == all[i].generation) {
      --client->second.count;
      --count;
    }

    for (const Part& part : *all[i].parts) {
      classes->disuse(part.resourceClass);
    }
    --records;
  }

  all.erase(all.begin() + kept, all.begin() + end);
}


bool Filters::covers(
    const Agent& agent,
    uint32_t framework,
    uint32_t role,
    const Parts& offer,
    int64_t nowMs) const
{
  if (agent.filters.empty()) {
    return false;
  }

  const std::pair<size_t, size_t> mine = range(agent, framework, role);

  return std::any_of(
      agent.filters.begin() + mine.first,
      agent.filters.begin() + mine.second,
      [&](const OfferFilter& each) {
        return lasts(each, nowMs) && contains(*each.parts, offer);
      });
}


void Filters::drop(uint32_t framework, uint32_t role)
{
  auto client = clients.find(clientKey(framework, role));
  if (client != clients.end()) {
    count -= client->second.count;
    clients.erase(client);
  }
}


void Filters::dropFramework(uint32_t framework)
{
  for (auto client = clients.begin(); client != clients.end();) {
    const bool its = client->first >> 32 == framework;
    count -= its ? client->second.count : 0;
    client = its ? clients.erase(client) : std::next(client);
  }
}


size_t Filters::countOf(uint32_t role) const
{
  size_t result = 0;
  for (const auto& client : clients) {
    const bool inRole = static_cast<uint32_t>(client.first) == role;
    result += inRole ? client.second.count : 0;
  }
  return result;
}


void Filters::dropAgent(uint32_t number)
{
  const Agent* agent = agents->find(number);
  if (agent != nullptr && !agent->filters.empty()) {
    sweep(
        agents->edit(number), 0, agent->filters.size(), [](const OfferFilter&) {
          return true;
        });
  }
}


void Filters::expire(int64_t nowMs)
{
  std::vector<uint32_t> due;
  while (!expiries.empty() && expiries.top().ms < nowMs) {
    due.push_back(expiries.top().agent);
    expiries.pop();
  }

  std::sort(due.begin(), due.end());
  due.erase(std::unique(due.begin(), due.end()), due.end());

  for (uint32_t number : due) {
    const Agent* agent = agents->find(number);
    const bool any = agent != nullptr &&
        std::any_of(agent->filters.begin(),
                    agent->filters.end(),
                    [&](const OfferFilter& each) {
                      return each.expiresMs < nowMs;
                    });

    if (any) {
      sweep(
          agents->edit(number),
          0,
          agent->filters.size(),
          [&](const OfferFilter& each) { return !lasts(each, nowMs); });
    }
  }
}


void Filters::rebuildExpiries()
{
  std::vector<Expiry> entries;
  entries.reserve(records);

  for (uint32_t number = 0; number < agents->end(); ++number) {
    const Agent* agent = agents->find(number);
    if (agent != nullptr) {
      for (const OfferFilter& filter : agent->filters) {
        entries.push_back(Expiry{filter.expiresMs, number});
      }
    }
  }

  expiries = Expiries(std::greater<Expiry>(), std::move(entries));
}

} // namespace brain {
} // namespace allocator {
