#include "brain/deciding/competition.hpp"

#include <algorithm>

#include "brain/deciding/gates.hpp"

namespace allocator {
namespace brain {

double dominantShare(const Cluster& cluster, const Amounts& held)
{
  const auto& excluded = cluster.options.excludedNames;
  double largest = 0;

  for (const auto& entry : held) {
    const int64_t total = amountOf(cluster.sums.total(), entry.first);
    const bool counts = total > 0 &&
        (excluded.empty() ||
         excluded.count(cluster.classes.names.name(entry.first)) == 0);

    if (counts) {
      largest = std::max(largest, static_cast<double>(entry.second) / total);
    }
  }

  return largest;
}


double weightOf(const Cluster& cluster, const std::string& role)
{
  auto found = cluster.weights.find(role);
  return found == cluster.weights.end() ? 1.0 : found->second;
}


uint64_t Turns::of(uint32_t framework, uint32_t role) const
{
  // A new framework ranks as if it had just been served.
  auto found = last.find(clientKey(framework, role));
  return found != last.end() ? found->second : role == 0 ? now : 0;
}


Competition::Competition(const Cluster& _cluster, const Turns& _turns)
  : cluster(_cluster), turns(_turns)
{
  for (uint32_t number = 0; number < cluster.frameworks.end(); ++number) {
    const Framework* framework = cluster.frameworks.find(number);
    if (framework == nullptr) {
      continue;
    }

    // The roles of a framework rank one turn apart, up to a distance of as many
    // turns as there are frameworks.
    uint64_t turn = turns.of(number, 0);
    const uint64_t last = turn + cluster.frameworks.size();
    for (const Waiting& waiting : byTurn(number, *framework)) {
      const uint32_t role = std::get<2>(waiting);
      Node* leaf = place(role, number, placeRole(role));

      for (Node* node = leaf; node != nullptr; node = node->parent) {
        node->oldest = std::min(node->oldest, turn);
      }

      turn = std::min(turn + 1, last);
    }
  }

  for (auto& entry : nodes) {
    Node& node = entry.second;
    node.rank = rankOf(node);
    node.parent->children.emplace(node.rank, &node);
  }
}


std::vector<Competition::Waiting> Competition::byTurn(
    uint32_t number,
    const Framework& framework) const
{
  std::vector<Waiting> roles;
  for (uint32_t role : framework.roles) {
    if (admitFramework(cluster, number, role) ==
        wire::OUTCOME_REASON_UNSPECIFIED) {
      uint32_t top = role;
      while (cluster.roles.parent(top) != 0) {
        top = cluster.roles.parent(top);
      }

      roles.emplace_back(turns.of(0, top), turns.of(number, role), role);
    }
  }

  std::sort(roles.begin(), roles.end());
  return roles;
}


Competition::Node* Competition::placeRole(uint32_t role)
{
  return role == 0 ? &root
                   : place(role, 0, placeRole(cluster.roles.parent(role)));
}


Competition::Node*
Competition::place(uint32_t role, uint32_t framework, Node* parent)
{
  Node& node = nodes[clientKey(framework, role)];

  if (node.parent == nullptr) {
    node.role = role;
    node.framework = framework;
    node.parent = parent;
  }

  return &node;
}


Competition::Rank Competition::rankOf(const Node& node) const
{
  const uint64_t own = turns.of(node.framework, node.role);
  const uint64_t waits = std::max(own, node.oldest);

  if (node.framework != 0) {
    const std::string* id = cluster.frameworkHandles.id(node.framework);
    return Rank(
        dominantShare(
            cluster, cluster.sums.ofClient(node.framework, node.role)),
        waits,
        own,
        false,
        id == nullptr ? std::string() : *id);
  }

  const std::string& path = cluster.roles.path(node.role);
  return Rank(
      dominantShare(cluster, cluster.sums.ofRole(node.role)) /
          weightOf(cluster, path),
      waits,
      own,
      true,
      path);
}


void Competition::update(Node* node)
{
  for (; node->parent != nullptr; node = node->parent) {
    node->parent->children.erase({node->rank, node});
    node->rank = rankOf(*node);
    node->parent->children.emplace(node->rank, node);
  }
}

} // namespace brain {
} // namespace allocator {
