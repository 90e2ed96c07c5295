#include "brain/competition.hpp"

#include <algorithm>

#include "brain/gates.hpp"

namespace allocator {
namespace brain {

Competition::Competition(const Cluster& _cluster, const Served& _served)
  : cluster(_cluster), served(_served)
{
  for (uint32_t number = 0; number < cluster.frameworks.end(); ++number) {
    const Framework* framework = cluster.frameworks.find(number);
    if (framework == nullptr) {
      continue;
    }

    for (uint32_t role : framework->roles) {
      if (admitFramework(cluster, number, role) ==
          wire::OUTCOME_REASON_UNSPECIFIED) {
        place(role, number, placeRole(role));
      }
    }
  }
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
    node.rank = rankOf(node);
    parent->children.emplace(node.rank, &node);
  }

  return &node;
}


double Competition::share(const Amounts& held) const
{
  const auto& excluded = cluster.options.excludedNames;
  double largest = 0;

  for (const auto& entry : held) {
    const int64_t total = amountOf(cluster.sums.total(), entry.first);
    const bool counts = total > 0 &&
        (excluded.empty() ||
         excluded.count(cluster.pieces.names.name(entry.first)) == 0);

    if (counts) {
      largest = std::max(largest, static_cast<double>(entry.second) / total);
    }
  }

  return largest;
}


Competition::Rank Competition::rankOf(const Node& node) const
{
  auto found = served.find(clientKey(node.framework, node.role));
  const uint64_t times = found == served.end() ? 0 : found->second;

  if (node.framework != 0) {
    const std::string* id = cluster.frameworkHandles.id(node.framework);
    return Rank(
        share(cluster.sums.ofClient(node.framework, node.role)),
        times,
        false,
        id == nullptr ? std::string() : *id);
  }

  const std::string& path = cluster.roles.path(node.role);
  auto weight = cluster.weights.find(path);
  return Rank(
      share(cluster.sums.ofRole(node.role)) /
          (weight == cluster.weights.end() ? 1.0 : weight->second),
      times,
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
