#include "adapter/fallback.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
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

  void charge(const FrameworkID& frameworkId, const Resources& resources);

  // Of a role with all below it, or of a client, over the weights.
  double ofRole(const string& role) const { return share(byRole, role); }
  double ofClient(const string& key) const { return share(byClient, key); }

private:
  double share(const hashmap<string, Quantities>& holdings, const string& key)
      const;

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


void Shares::charge(const FrameworkID& frameworkId, const Resources& resources)
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
      largest =
          std::max(largest, static_cast<double>(held.second) / all->second);
    }
  }

  return largest;
}


double weightOf(const Cluster& state, const string& role)
{
  auto found = state.weights.find(role);
  return found == state.weights.end() ? 1.0 : found->second;
}


// What orders siblings: the share, how often they were served, a role's
// own frameworks before the roles below it, and the path.
using Rank = std::tuple<double, uint64_t, bool, string>;


// The roles that compete, with their frameworks as leaves. Who wins moves
// with its ancestors only; all others keep their places.
class Tree
{
public:
  struct Node
  {
    string key;
    const Client* client = nullptr;
    Node* parent = nullptr;
    Rank rank;
    std::set<std::pair<Rank, Node*>> children;
  };

  Tree(
      const Cluster& state,
      const Shares& shares,
      const hashmap<string, uint64_t>& served,
      const vector<Client>& clients);

  // Clients in their order, until the visitor has enough (false).
  template <typename Visitor>
  bool visit(const Visitor& visitor) const
  {
    return visit(root, visitor);
  }

  // To be called when what it holds has changed.
  void update(Node* node);

private:
  Node* place(const string& key, Node* parent, const Client* client);
  Rank rankOf(const Node& node) const;

  template <typename Visitor>
  bool visit(const Node& node, const Visitor& visitor) const
  {
    for (const auto& child : node.children) {
      const bool more = child.second->client != nullptr
          ? visitor(child.second)
          : visit(*child.second, visitor);
      if (!more) {
        return false;
      }
    }

    return true;
  }

  const Cluster& state;
  const Shares& shares;
  const hashmap<string, uint64_t>& served;
  Node root;
  std::map<string, Node> nodes;
};


Tree::Tree(
    const Cluster& _state,
    const Shares& _shares,
    const hashmap<string, uint64_t>& _served,
    const vector<Client>& clients)
  : state(_state), shares(_shares), served(_served)
{
  for (const Client& client : clients) {
    Node* parent = &root;
    const string& role = client.role;

    for (size_t end = role.find('/');; end = role.find('/', end + 1)) {
      parent = place(role.substr(0, end), parent, nullptr);
      if (end == string::npos) {
        break;
      }
    }

    place(keyOf(role, client.frameworkId), parent, &client);
  }
}


Tree::Node* Tree::place(const string& key, Node* parent, const Client* client)
{
  Node& node = nodes[key];

  if (node.parent == nullptr) {
    node.key = key;
    node.client = client;
    node.parent = parent;
    node.rank = rankOf(node);
    parent->children.emplace(node.rank, &node);
  }

  return &node;
}


Rank Tree::rankOf(const Node& node) const
{
  auto found = served.find(node.key);
  const uint64_t times = found == served.end() ? 0 : found->second;
  const bool isRole = node.client == nullptr;
  const double share = isRole
      ? shares.ofRole(node.key) / weightOf(state, node.key)
      : shares.ofClient(node.key);

  return Rank(share, times, isRole, node.key);
}


void Tree::update(Node* node)
{
  for (; node->parent != nullptr; node = node->parent) {
    node->parent->children.erase({node->rank, node});
    node->rank = rankOf(*node);
    node->parent->children.emplace(node->rank, node);
  }
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


bool hasAnything(const Cluster& state, const SlaveID& agentId)
{
  const Ledger::Agent* books = state.ledger.find(agentId);
  return books != nullptr && !books->available().empty();
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

// Offers an agent to everybody in turn, until nothing is left there. Gives
// the winners.
vector<Tree::Node*> offerAgent(
    const SlaveID& agentId,
    const Tree& tree,
    int64_t nowMs,
    Cluster* state,
    Shares* shares,
    QuotaBook* quotas,
    hashmap<FrameworkID, Offers>* offers)
{
  Resources sharedOffered;
  vector<Tree::Node*> winners;

  tree.visit([&](Tree::Node* node) {
    const Client& client = *node->client;
    const Pair pair{client.frameworkId, client.role, agentId};

    if (admitPair(*state, pair) != wire::OUTCOME_REASON_UNSPECIFIED) {
      return true;
    }

    const Verdict verdict = finish(
        *state,
        pair,
        withoutOffered(pool(*state, pair), sharedOffered),
        *quotas,
        nowMs);

    if (verdict.reason != wire::OUTCOME_REASON_OFFERED) {
      return true;
    }

    sharedOffered += verdict.given.shared();
    quotas->charge(client.role, verdict.given);
    const Resources given = state->ledger.offer(
        client.frameworkId, agentId, client.role, verdict.given, verdict.all);
    shares->charge(client.frameworkId, given);
    (*offers)[client.frameworkId][client.role][agentId] += given;
    winners.push_back(node);
    return hasAnything(*state, agentId);
  });

  return winners;
}

} // namespace {


void Fallback::allocate(
    Cluster* state,
    const vector<SlaveID>& candidates,
    QuotaBook* quotas,
    int64_t nowMs,
    hashmap<FrameworkID, Offers>* offers)
{
  vector<SlaveID> agents;
  for (const SlaveID& agentId : candidates) {
    if (admitAgent(*state, agentId) == wire::OUTCOME_REASON_UNSPECIFIED &&
        hasAnything(*state, agentId)) {
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
  Tree tree(*state, shares, served, clients);

  for (const SlaveID& agentId : agents) {
    const vector<Tree::Node*> winners =
        offerAgent(agentId, tree, nowMs, state, &shares, quotas, offers);

    for (Tree::Node* node : winners) {
      ++served[node->client->role];
      ++served[node->key];
      tree.update(node);
    }
  }
}

} // namespace adapter {
} // namespace allocator {
