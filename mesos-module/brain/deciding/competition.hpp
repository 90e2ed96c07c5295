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

// The largest part of any total of the cluster that `held` is; resources that
// do not count in shares apart.
double dominantShare(const Cluster& cluster, const Amounts& held);

// 1 where nobody has set another.
double weightOf(const Cluster& cluster, const std::string& role);


// When each was offered something last, by the numbers of all turns. Of equal
// shares it is the turn of the framework that waits for longest, in whichever
// of its roles; then of the role that does. A role is as far in front as the
// framework in it that waits for longest, but not before its own last turn. A
// framework's roles stand in a row: each has one turn more than the role in
// front of it. So nobody comes to the front by coming again, by reviving, or by
// other or many roles.
struct Turns
{
  uint64_t of(uint32_t framework, uint32_t role) const;

  uint64_t now = 0;

  // By `clientKey`: of frameworks in their roles, of roles (framework 0), and
  // of frameworks in whichever role (role 0), as of before a cycle.
  std::unordered_map<uint64_t, uint64_t> last;
};


// The roles that compete, with their frameworks as leaves, by dominant
// share over weight. Who wins moves with its ancestors only; all others
// keep their places.
class Competition
{
public:
  // Of siblings: the share, whose turn it is, a role's own frameworks before
  // the roles below it, and the path or id.
  using Rank = std::tuple<double, uint64_t, uint64_t, bool, std::string>;

  struct Node
  {
    uint32_t role = 0;
    uint32_t framework = 0; // 0 for a role.
    Node* parent = nullptr;
    uint64_t oldest = std::numeric_limits<uint64_t>::max(); // Below it.
    Rank rank;
    std::set<std::pair<Rank, Node*>> children;
  };

  // All frameworks that may be offered something, in their roles.
  Competition(const Cluster& cluster, const Turns& turns);

  bool empty() const { return root.children.empty(); }

  // Of roles and of frameworks in them.
  size_t size() const { return nodes.size(); }

  // Leaves in their order, until the visitor has enough (false).
  template <typename Visitor>
  bool visit(const Visitor& visitor) const
  {
    return visit(root, visitor);
  }

  // To be called when what it holds has changed.
  void update(Node* node);

private:
  // The last turn of the role right below the root, that of the framework in
  // its own role, and this role.
  using Waiting = std::tuple<uint64_t, uint64_t, uint32_t>;

  // Its roles that may be offered something; which waits for longest is first.
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
