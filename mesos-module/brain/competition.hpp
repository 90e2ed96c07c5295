#ifndef __ALLOCATOR_BRAIN_COMPETITION_HPP__
#define __ALLOCATOR_BRAIN_COMPETITION_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "brain/cluster.hpp"

namespace allocator {
namespace brain {

// The roles that compete, with their frameworks as leaves, by dominant
// share over weight. Who wins moves with its ancestors only; all others
// keep their places.
class Competition
{
public:
  using Served = std::unordered_map<uint64_t, uint64_t>;

  // Of siblings: the share, how often they were served, a role's own
  // frameworks before the roles below it, and the path or id.
  using Rank = std::tuple<double, uint64_t, bool, std::string>;

  struct Node
  {
    uint32_t role = 0;
    uint32_t framework = 0; // 0 for a role.
    Node* parent = nullptr;
    Rank rank;
    std::set<std::pair<Rank, Node*>> children;
  };

  // All frameworks that may be offered something, in their roles.
  Competition(const Cluster& cluster, const Served& served);

  bool empty() const { return root.children.empty(); }

  // Leaves in their order, until the visitor has enough (false).
  template <typename Visitor>
  bool visit(const Visitor& visitor) const
  {
    return visit(root, visitor);
  }

  // To be called when what it holds has changed.
  void update(Node* node);

private:
  Node* place(uint32_t role, uint32_t framework, Node* parent);
  Node* placeRole(uint32_t role);
  Rank rankOf(const Node& node) const;
  double share(const Amounts& held) const;

  template <typename Visitor>
  bool visit(const Node& node, const Visitor& visitor) const
  {
    for (const auto& child : node.children) {
      const bool more = child.second->framework != 0
          ? visitor(child.second)
          : visit(*child.second, visitor);
      if (!more) {
        return false;
      }
    }

    return true;
  }

  const Cluster& cluster;
  const Served& served;
  Node root;
  std::map<uint64_t, Node> nodes;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_COMPETITION_HPP__
