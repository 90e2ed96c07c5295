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

// Weighted dominant resource fairness over the same books and gates as
// for a sidecar's decisions. As Mesos's own allocator it goes over the
// agents in random order, twice: first for roles whose guarantees are not
// reached, then for all; and gives each agent as a whole to whoever comes
// first: among the roles by dominant share over weight, then among the
// role's frameworks. Ties go to whose turn it is (see `Turns`), then to the
// lower path or id.
class Fallback
{
public:
  void seed(uint64_t value) { random.seed(value); }

  // Begins a cycle, over some agents or all of them. One that is under way
  // goes on to its end, however often others are wanted meanwhile: else its
  // second round might never come. Those add up to one that follows.
  void begin(
      const Cluster& cluster,
      bool all,
      const std::vector<uint32_t>& some,
      int64_t clockMs);

  // None is to follow: somebody else decides from now on.
  void beLast() { wanted = false; }

  bool underWay() const { return running; }
  void stop() { running = wanted = false; }

  // Goes on by as much work as is due at a time. What is given is booked, and
  // added to `offers`.
  void slice(Cluster* cluster, std::vector<Offer>* offers);

  // Its number is to name another.
  void forget(uint32_t framework);
  void forgetRoles(const std::vector<uint32_t>& roles);

private:
  // The agent that is offered to everybody in turn, across slices.
  struct Turn
  {
    // Who was asked, by `clientKey`: the order may be another by now.
    std::unordered_set<uint64_t> asked;

    // A copy of a shared volume is offered once.
    std::unordered_set<uint32_t> sharedOffered;
  };

  void start(const Cluster& cluster);
  void endRound(const Cluster& cluster);
  bool offerAgent(
      Cluster* cluster,
      Competition* competition,
      size_t most,
      size_t* work,
      std::vector<Offer>* offers);
  void takeTurn(const Competition::Node& winner);
  void lineUp(const Cluster& cluster);
  bool offerTo(
      const Competition::Node& node,
      uint32_t agent,
      Cluster* cluster,
      size_t* work,
      std::vector<Offer>* offers);

  std::mt19937_64 random;
  bool running = false;
  bool guarantees = false; // Which of the two rounds it is.
  int64_t asOfMs = 0;
  std::vector<uint32_t> agents;
  size_t next = 0;
  Turn turn;

  // The cycle that follows.
  bool wanted = false;
  bool wantedAll = false;
  int64_t wantedMs = 0;
  std::vector<uint32_t> wantedAgents;

  Turns turns;

  // Who had a turn in this cycle, and its last one.
  std::unordered_map<uint32_t, uint64_t> fed;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_FALLBACK_HPP__
