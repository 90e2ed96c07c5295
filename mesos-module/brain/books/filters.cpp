#include "brain/books/filters.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace allocator {
namespace brain {
namespace {

// Dropped filters are swept when they exceed this plus the number in force.
constexpr size_t DROPPED_MAX = 1024;

} // namespace {


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
  return filter.expiresMs >= nowMs && !isDropped(filter);
}


bool Filters::isDropped(const OfferFilter& filter) const
{
  auto client = clients.find(clientKey(filter.framework, filter.role));

  return client == clients.end() ||
      client->second.generation != filter.generation;
}


void Filters::countIn(uint32_t role, ptrdiff_t more)
{
  count += more;
  const auto found = ofRole.emplace(role, 0).first;
  found->second += more;
  if (found->second == 0) {
    ofRole.erase(found);
  }
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

  // Remove filters that the new one contains and outlives, so repeated declines
  // do not grow the list.
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
  countIn(role, 1);
  ++records;
  expiries.push(Expiry{expiresMs, number});

  // Also bound the entries of removed filters.
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

    if (!isDropped(all[i])) {
      auto client = clients.find(clientKey(all[i].framework, all[i].role));
      countIn(all[i].role, -1);
      if (--client->second.count == 0) {
        clients.erase(client);
      }
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
    countIn(role, -static_cast<ptrdiff_t>(client->second.count));
    clients.erase(client);
  }
}


void Filters::dropFramework(uint32_t framework)
{
  for (auto client = clients.begin(); client != clients.end();) {
    if (client->first >> 32 == framework) {
      const auto role = static_cast<uint32_t>(client->first);
      countIn(role, -static_cast<ptrdiff_t>(client->second.count));
      client = clients.erase(client);
    } else {
      ++client;
    }
  }
}


size_t Filters::countOf(uint32_t role) const
{
  const auto found = ofRole.find(role);
  return found == ofRole.end() ? 0 : found->second;
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
  // Bounds memory against frameworks that keep dropping long filters.
  if (records > 2 * count + DROPPED_MAX) {
    sweepDropped();
  }

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


void Filters::sweepDropped()
{
  for (uint32_t number = 0; number < agents->end(); ++number) {
    const Agent* agent = agents->find(number);
    if (agent != nullptr && !agent->filters.empty()) {
      sweep(
          agents->edit(number),
          0,
          agent->filters.size(),
          [this](const OfferFilter& each) { return isDropped(each); });
    }
  }
  rebuildExpiries();
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
