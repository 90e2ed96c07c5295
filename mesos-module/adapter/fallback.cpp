#include "adapter/fallback.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// One framework in one role.
struct Client
{
  FrameworkID frameworkId;
  string role;
};


// Roles and clients by what they hold of the cluster.
class Shares
{
public:
  explicit Shares(const Cluster& state);

  void charge(
      const FrameworkID& frameworkId,
      const Resources& resources);

  // Of a role with all below it, or of a client, over the weights.
  double ofRole(const string& role) const { return share(byRole, role); }
  double ofClient(const string& key) const { return share(byClient, key); }

private:
  double share(
      const hashmap<string, Quantities>& holdings,
      const string& key) const;

  const Cluster& state;
  Quantities total;
  hashmap<string, Quantities> byRole;
  hashmap<string, Quantities> byClient;
};


string keyOf(const string& role, const FrameworkID& frameworkId)
{
  // No role has a blank.
  return role + " " + frameworkId.value();
}


Shares::Shares(const Cluster& _state) : state(_state)
{
  for (const auto& row : state.ledger.agents()) {
    for (const Resource& resource : row.second.total) {
      if (resource.type() == mesos::Value::SCALAR) {
        total[resource.name()] += amountOf(resource);
      }
    }

    for (const auto& held : row.second.held) {
      charge(held.first, held.second);
    }
  }
}


void Shares::charge(
    const FrameworkID& frameworkId,
    const Resources& resources)
{
  for (const Resource& resource : resources) {
    if (resource.type() != mesos::Value::SCALAR) {
      continue;
    }

    const int64_t amount = amountOf(resource);
    const string& role = resource.allocation_info().role();
    byClient[keyOf(role, frameworkId)][resource.name()] += amount;

    // A role counts what is held below it.
    for (size_t end = role.find('/');; end = role.find('/', end + 1)) {
      byRole[role.substr(0, end)][resource.name()] += amount;
      if (end == string::npos) {
        break;
      }
    }
  }
}


double Shares::share(
    const hashmap<string, Quantities>& holdings,
    const string& key) const
{
  auto found = holdings.find(key);
  if (found == holdings.end()) {
    return 0;
  }

  const auto& excluded = state.options.fairnessExcludeResourceNames;
  double largest = 0;

  for (const auto& held : found->second) {
    auto all = total.find(held.first);
    const bool counts = all != total.end() && all->second > 0 &&
      !(excluded.isSome() && excluded->count(held.first) > 0);

    if (counts) {
      largest = std::max(
          largest, static_cast<double>(held.second) / all->second);
    }
  }

  return largest;
}


double weightOf(const Cluster& state, const string& role)
{
  auto found = state.weights.find(role);
  return found == state.weights.end() ? 1.0 : found->second;
}


// What orders clients: shares from the top-level role down, each with
// the path that breaks ties, so that siblings compete at every level.
using Rank = vector<std::tuple<double, uint64_t, string>>;


Rank rankOf(
    const Cluster& state,
    const Shares& shares,
    const hashmap<string, uint64_t>& served,
    const Client& client)
{
  Rank rank;
  const string& role = client.role;

  auto timesServed = [&](const string& key) -> uint64_t {
    auto found = served.find(key);
    return found == served.end() ? 0 : found->second;
  };

  for (size_t end = role.find('/');; end = role.find('/', end + 1)) {
    const string path = role.substr(0, end);
    rank.emplace_back(
        shares.ofRole(path) / weightOf(state, path), timesServed(path), path);
    if (end == string::npos) {
      break;
    }
  }

  const string key = keyOf(role, client.frameworkId);
  rank.emplace_back(shares.ofClient(key), timesServed(key), key);
  return rank;
}


vector<Client> clientsOf(const Cluster& state)
{
  vector<Client> clients;

  for (const auto& entry : state.frameworks) {
    for (const string& role : entry.second.roles) {
      if (admitFramework(state, entry.first, role) ==
          wire::OUTCOME_REASON_UNSPECIFIED) {
        clients.push_back(Client{entry.first, role});
      }
    }
  }

  return clients;
}


Resources wanted(const Cluster& state, const Pair& pair, Scope scope)
{
  const Resources free = pool(state, pair);

  if (scope == Scope::ALL) {
    return free;
  }

  return free.filter([](const Resource& each) { return !isPlain(each); });
}


bool hasAnything(const Cluster& state, const SlaveID& agentId, Scope scope)
{
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (books == nullptr) {
    return false;
  }

  for (const Resource& resource : books->available()) {
    if (scope == Scope::ALL || !isPlain(resource)) {
      return true;
    }
  }

  return false;
}


// A copy of a shared volume is offered once in a cycle.
Resources withoutOffered(const Resources& resources, const Resources& offered)
{
  if (offered.empty()) {
    return resources;
  }

  return resources.filter([&](const Resource& each) {
    return !Resources::isShared(each) || !offered.contains(each);
  });
}

} // namespace {


void Fallback::allocate(
    Cluster* state,
    const vector<SlaveID>& candidates,
    Scope scope,
    QuotaBook* quotas,
    int64_t nowMs,
    hashmap<FrameworkID, Offers>* offers)
{
  vector<SlaveID> agents;
  for (const SlaveID& agentId : candidates) {
    if (admitAgent(*state, agentId) == wire::OUTCOME_REASON_UNSPECIFIED &&
        hasAnything(*state, agentId, scope)) {
      agents.push_back(agentId);
    }
  }

  const vector<Client> clients = clientsOf(*state);

  if (agents.empty() || clients.empty()) {
    return;
  }

  std::mt19937_64 engine(random++);
  std::shuffle(agents.begin(), agents.end(), engine);

  Shares shares(*state);
  vector<std::pair<Rank, const Client*>> order;
  for (const Client& client : clients) {
    order.emplace_back(rankOf(*state, shares, served, client), &client);
  }
  std::sort(order.begin(), order.end());

  for (const SlaveID& agentId : agents) {
    Resources sharedOffered;
    vector<const Client*> winners;

    for (const auto& entry : order) {
      const Client& client = *entry.second;
      const Pair pair{client.frameworkId, client.role, agentId};

      if (admitPair(*state, pair) != wire::OUTCOME_REASON_UNSPECIFIED) {
        continue;
      }

      const Verdict verdict = finish(
          *state,
          pair,
          withoutOffered(wanted(*state, pair, scope), sharedOffered),
          *quotas,
          nowMs);

      if (verdict.reason != wire::OUTCOME_REASON_OFFERED) {
        continue;
      }

      Resources given = verdict.given;
      sharedOffered += given.shared();
      quotas->charge(client.role, given);
      given.allocate(client.role);
      state->ledger.hold(client.frameworkId, agentId, given);
      shares.charge(client.frameworkId, given);
      (*offers)[client.frameworkId][client.role][agentId] += given;
      winners.push_back(&client);

      if (!hasAnything(*state, agentId, scope)) {
        break;
      }
    }

    if (winners.empty()) {
      continue;
    }

    for (const Client* client : winners) {
      ++served[client->role];
      ++served[keyOf(client->role, client->frameworkId)];
    }

    for (auto& entry : order) {
      entry.first = rankOf(*state, shares, served, *entry.second);
    }
    std::sort(order.begin(), order.end());
  }
}

} // namespace adapter {
} // namespace allocator {
