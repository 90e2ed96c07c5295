#ifndef __ALLOCATOR_BRAIN_DECIDING_COMPETITION_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_COMPETITION_HPP__

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "brain/books/cluster.hpp"

namespace allocator {
namespace brain {

// The dominant share of `held`: its largest share of any total of the cluster.
// Excludes resources that do not count in shares.
double dominantShare(const Cluster& cluster, const Amounts& held);

// 1 by default.
double weightOf(const Cluster& cluster, const std::string& role);


// Turns break ties between equal shares. Each offer gets the next turn number.
// The framework whose latest turn, over all its roles, is the oldest goes
// first; then the role whose latest turn is the oldest.
//
// A role ranks by the oldest turn of its frameworks, or by its own last turn if
// that is later. The roles of a framework rank one turn apart, beginning with
// the framework's own turn. So rejoining, reviving, or having other or more
// roles brings no advantage.
struct Turns
{
  uint64_t of(uint32_t framework, uint32_t role) const;

  uint64_t now = 0;

  // Last turns by `clientKey`: of frameworks in roles, of roles (framework 0),
  // and of frameworks in any role as of the cycle's start (role 0).
  std::unordered_map<uint64_t, uint64_t> last;
};


// The competing roles as a tree with frameworks as leaves, ordered by dominant
// share over weight. Updating a winner moves only it and its ancestors.
class Competition
{
public:
  // Order of siblings: share, turn, own last turn, frameworks before roles,
  // then path or id.
  using Rank = std::tuple<double, uint64_t, uint64_t, bool, std::string>;

  struct Node
  {
    uint32_t role = 0;
    uint32_t framework = 0; // 0: a role.
    Node* parent = nullptr;
    // Earliest turn in its subtree.
    uint64_t oldest = std::numeric_limits<uint64_t>::max();
    Rank rank;
    std::set<std::pair<Rank, Node*>> children;
  };

  // Adds all frameworks that may receive offers, in each of their roles.
  Competition(const Cluster& cluster, const Turns& turns);

  bool empty() const { return root.children.empty(); }

  // Nodes: roles, and frameworks in roles.
  size_t size() const { return nodes.size(); }

  // Visits leaves in order until the visitor returns false.
  template <typename Visitor>
  bool visit(const Visitor& visitor) const
  {
    return visit(root, visitor);
  }

  // Call after the holdings of the leaf `node` changed.
  void update(Node* node);

private:
  // Last turn of the top-level role, last turn of the framework in its role,
  // and the role.
  using Waiting = std::tuple<uint64_t, uint64_t, uint32_t>;

  // The framework's roles that may receive offers, longest-waiting first.
  std::vector<Waiting> byTurn(uint32_t number, const Framework& framework)
      const;

  Node* place(uint32_t role, uint32_t framework, Node* parent);
  Node* placeRole(uint32_t role);
  Rank rankOf(const Node& node) const;

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
  const Turns& turns;
  Node root;
  std::map<uint64_t, Node> nodes;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_COMPETITION_HPP__
