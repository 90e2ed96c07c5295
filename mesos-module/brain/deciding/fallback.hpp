#ifndef __ALLOCATOR_BRAIN_DECIDING_FALLBACK_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_FALLBACK_HPP__

#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "brain/books/cluster.hpp"
#include "brain/deciding/competition.hpp"
#include "brain/deciding/gates.hpp"
#include "brain/ready.hpp"

namespace allocator {
namespace brain {

// Decides without a sidecar, by weighted dominant resource fairness, on the
// same books and through the same gates as the sidecar's decisions.
//
// Like Mesos's own allocator, it goes through the agents in random order,
// twice: first for roles with unmet guarantees, then for all roles. Each agent
// is offered as a whole to the first client that may receive it. Clients are
// ordered by dominant share over weight, first among roles, then among a role's
// frameworks. Ties are broken by turns (see `Turns`), then by path or id.
class Fallback
{
public:
  void seed(uint64_t value) { random.seed(value); }

  // Requests a cycle over some or all agents. A cycle under way first runs to
  // its end, because frequent requests would otherwise prevent its second
  // round; requests made meanwhile are merged into one following cycle.
  void begin(
      const Cluster& cluster,
      bool all,
      const std::vector<uint32_t>& some,
      int64_t clockMs);

  // Cancels the following cycle. Call when the sidecar decides again.
  void cancelFollowing() { wanted = false; }

  bool underWay() const { return running; }
  void stop() { running = wanted = false; }

  // Runs one slice: books offers and appends them to `offers`.
  void slice(Cluster* cluster, std::vector<Offer>* offers);

  // Call before the number is reused.
  void forget(uint32_t framework);
  void forgetRoles(const std::vector<uint32_t>& roles);

private:
  void start(const Cluster& cluster);
  void endRound(const Cluster& cluster);
  bool offerAgent(
      Cluster* cluster,
      Competition* competition,
      size_t most,
      size_t* work,
      std::vector<Offer>* offers);
  void takeTurn(const Competition::Node& winner);
  void updateTurns(const Cluster& cluster);
  bool offerTo(
      const Competition::Node& node,
      uint32_t agent,
      Cluster* cluster,
      size_t* work,
      std::vector<Offer>* offers);

  std::mt19937_64 random;
  bool running = false;
  bool guarantees = false; // First round: guarantees only.
  int64_t asOfMs = 0;
  std::vector<uint32_t> agents;
  size_t next = 0;

  // Clients tried in earlier slices for the current agent, by `clientKey`. A
  // position in the order would not suffice, because the order may change
  // between slices.
  std::unordered_set<uint64_t> askedBefore;

  // Shared volumes offered in this cycle, in either round; each is offered once
  // per cycle. By `volumeKey`.
  std::unordered_set<uint64_t> sharedOffered;

  // The following cycle.
  bool wanted = false;
  bool wantedAll = false;
  int64_t wantedMs = 0;
  std::vector<uint32_t> wantedAgents;

  Turns turns;

  // Frameworks served in this cycle, with their last turn.
  std::unordered_map<uint32_t, uint64_t> served;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_FALLBACK_HPP__
